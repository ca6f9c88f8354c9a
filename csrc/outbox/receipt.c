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
