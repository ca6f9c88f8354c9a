#include "outbox/receipt.h"

static uint64_t hash_of(struct receipt_id id)
{
	uint64_t h = (id.node ^ (id.source * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xbf58476d1ce4e5b9);

	return (h ^ (h >> 32)) * UINT64_C(0x94d049bb133111eb) >> 7;
}

/* The receipt's link in the tree, which is NULL if there is no such receipt. */
static struct receipt **find(struct receipt **receipts, struct receipt_id id)
{
	struct receipt **at = receipts;

	for (uint64_t bits = hash_of(id); *at != NULL; bits >>= 1) {
		if ((*at)->id.node == id.node && (*at)->id.source == id.source) {
			break;
		}
		at = &(*at)->child[bits & 1];
	}
	return at;
}

static void insert(struct receipt **receipts, struct receipt **at, struct receipt *receipt)
{
	receipt->child[0] = receipt->child[1] = NULL;
	*at = receipt;
	if (*receipts == receipt) {
		receipt->next = NULL;
	} else {
		receipt->next = (*receipts)->next;
		(*receipts)->next = receipt;
	}
}

bool receipts_add(struct receipt **receipts, struct receipt_id id, struct receipt *spare)
{
	struct receipt **at = find(receipts, id);

	if (*at != NULL) {
		(*at)->n++;
		return false;
	}
	*spare = (struct receipt){ .id = id, .n = 1 };
	insert(receipts, at, spare);
	return true;
}

void receipts_merge(struct receipt **to, struct receipt **from)
{
	struct receipt *receipt, *next;

	for (receipt = *from; receipt != NULL; receipt = next) {
		struct receipt **at = find(to, receipt->id);

		next = receipt->next;
		if (*at == NULL) {
			insert(to, at, receipt);
		} else {
			(*at)->n += receipt->n;
			(*at)->in_row += receipt->in_row;
			mem_free(receipt);
		}
	}
	*from = NULL;
}

void receipts_mark_tried(struct receipt *receipts)
{
	for (; receipts != NULL; receipts = receipts->next) {
		receipts->tried = receipts->n;
	}
}

void receipts_written(struct receipt *receipts, bool all)
{
	for (; receipts != NULL; receipts = receipts->next) {
		const uint32_t written = all ? receipts->n : receipts->tried;

		receipts->written += written;
		receipts->n -= written;
		receipts->in_row -= written < receipts->in_row ? written : receipts->in_row;
	}
}

void receipts_mark_in_row(struct receipt *receipts, bool in_row)
{
	for (; receipts != NULL; receipts = receipts->next) {
		receipts->in_row = in_row ? receipts->n : 0;
	}
}

bool receipts_any_in_row(const struct receipt *receipts)
{
	while (receipts != NULL && receipts->in_row == 0) {
		receipts = receipts->next;
	}
	return receipts != NULL;
}

/* Moves the occurrences that are in the row from one receipt to another one. */
static void take_in_row(struct receipt *from, struct receipt *to)
{
	const uint32_t n = from->in_row;

	from->tried -= n < from->tried ? n : from->tried;
	from->n -= n;
	from->in_row = 0;
	*to = (struct receipt){ .id = from->id, .n = n };
}

void receipts_take_spooled(struct receipt **receipts, struct receipt **spooled)
{
	struct receipt *receipt = *receipts, *next, *taken;

	/* The tree is rebuilt, as it has no removal. */
	for (*receipts = NULL; receipt != NULL; receipt = next) {
		next = receipt->next;
		if (receipt->in_row == 0) {
			insert(receipts, find(receipts, receipt->id), receipt);
		} else if (receipt->in_row == receipt->n && receipt->written == 0) {
			take_in_row(receipt, receipt);
			insert(spooled, find(spooled, receipt->id), receipt);
		} else {
			taken = mem_alloc(sizeof(*taken));
			if (taken != NULL) {
				take_in_row(receipt, taken);
				insert(spooled, find(spooled, taken->id), taken);
			}
			insert(receipts, find(receipts, receipt->id), receipt);
		}
	}
}

void receipts_free(struct receipt *receipts)
{
	struct receipt *next;

	for (; receipts != NULL; receipts = next) {
		next = receipts->next;
		mem_free(receipts);
	}
}
