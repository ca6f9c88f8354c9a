#include "share/ledger_inner.h"

/* Idle nodes that are kept, and the memory of them. */
#define IDLE_MAX 256
#define IDLE_BYTES_MAX (1024 * 1024)
#define SLOTS_MIN 16

/* ---- lists ---- */

void nodes_push(struct list *list, struct node *node)
{
	node->next = NULL;
	node->prev = list->tail;
	if (list->tail != NULL) {
		list->tail->next = node;
	} else {
		list->head = node;
	}
	list->tail = node;
	list->len++;
}

void nodes_remove(struct list *list, struct node *node)
{
	if (node->prev != NULL) {
		node->prev->next = node->next;
	} else {
		list->head = node->next;
	}
	if (node->next != NULL) {
		node->next->prev = node->prev;
	} else {
		list->tail = node->prev;
	}
	list->len--;
}

/* ---- nodes ---- */

size_t node_size(const struct node *node)
{
	return sizeof(*node) + node->len + node->name.cap;
}

static uint32_t most_of(const uint32_t sinks[FRAME_SINKS])
{
	uint32_t most = 0;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		most = sinks[i] > most ? sinks[i] : most;
	}
	return most;
}

uint32_t node_left(const struct node *node)
{
	return most_of(node->left);
}

uint32_t node_resend(const struct node *node)
{
	return most_of(node->resend);
}

static struct node **bucket(const struct ledger *l, uint64_t hash)
{
	return &l->table[hash & (l->table_len - 1)];
}

struct node *node_find(const struct ledger *l, uint64_t hash, evrec_str bytes)
{
	struct node *node = l->table_len == 0 ? NULL : *bucket(l, hash);

	while (node != NULL && (node->hash != hash || !str_eq((evrec_str){ node->bytes, node->len }, bytes))) {
		node = node->next_of_hash;
	}
	return node;
}

static bool grow_table(struct ledger *l)
{
	const size_t len = l->table_len == 0 ? SLOTS_MIN : 2 * l->table_len;
	struct node **table = mem_zalloc(len * sizeof(struct node *));

	if (table == NULL) {
		return false;
	}
	mem_free(l->table);
	l->table = table;
	l->table_len = len;
	for (uint32_t i = 0; i < l->slots_len; i++) {
		struct node *node = l->slots[i].node;

		if (node != NULL) {
			node->next_of_hash = *bucket(l, node->hash);
			*bucket(l, node->hash) = node;
		}
	}
	return true;
}

static bool grow_slots(struct ledger *l)
{
	const uint32_t len = l->slots_len == 0 ? SLOTS_MIN : 2 * l->slots_len;
	struct slot *slots = mem_realloc(l->slots, len * sizeof(*slots));

	if (slots == NULL) {
		return false;
	}
	for (uint32_t i = l->slots_len; i < len; i++) {
		slots[i] = (struct slot){ NULL, i + 1 < len ? i + 1 : NONE, NONE, false };
	}
	l->free = l->slots_len;
	l->slots = slots;
	l->slots_len = len;
	return true;
}

struct node *node_new(struct ledger *l, uint64_t hash, evrec_str bytes)
{
	struct node *node;

	if ((l->free == NONE && !grow_slots(l)) || (l->busy + l->idle.len >= l->table_len && !grow_table(l))) {
		return NULL;
	}
	node = mem_alloc(sizeof(*node) + bytes.len);
	if (node == NULL) {
		return NULL;
	}
	*node = (struct node){ .hash = hash, .slot = l->free, .len = bytes.len };
	memcpy(node->bytes, bytes.data, bytes.len);
	l->free = l->slots[node->slot].next_free;
	l->slots[node->slot].node = node;
	node->next_of_hash = *bucket(l, hash);
	*bucket(l, hash) = node;
	return node;
}

void node_unlink(struct ledger *l, struct node *node)
{
	struct slot *slot = &l->slots[node->slot];
	struct node **at = bucket(l, node->hash);

	node_end_waiting(l, node);
	while (*at != node) {
		at = &(*at)->next_of_hash;
	}
	*at = node->next_of_hash;
	slot->node = NULL;
	slot->next_free = l->free;
	l->free = node->slot;
	if (node->known && !slot->stale) {
		slot->stale = true;
		slot->next_stale = l->stale;
		l->stale = node->slot;
	}
}

void node_free(struct node *node)
{
	if (node != NULL) {
		buf_free(&node->name);
		mem_free(node);
	}
}

/* ---- busy and idle ---- */

void node_remove_idle(struct ledger *l, struct node *node)
{
	nodes_remove(&l->idle, node);
	l->idle_bytes -= node_size(node);
}

void node_forget(struct ledger *l, struct node *node)
{
	node_remove_idle(l, node);
	node_unlink(l, node);
	node_free(node);
}

void node_become_idle(struct ledger *l, struct node *node)
{
	l->busy--;
	l->busy_bytes -= node_size(node);
	/* The owner forgets the event: if it happens again, it is a new event. */
	node->again = false;
	buf_free(&node->name);
	nodes_push(&l->idle, node);
	l->idle_bytes += node_size(node);
	while (l->idle.head != NULL && (l->idle.len > IDLE_MAX || l->idle_bytes > IDLE_BYTES_MAX)) {
		node_forget(l, l->idle.head);
	}
}

void node_forget_stale(struct ledger *l)
{
	struct slot *slot = &l->slots[l->stale];

	slot->stale = false;
	l->stale = slot->next_stale;
}
