#include "share/ledger_inner.h"

/* The most events that one new, longer event may replace. */
#define MOST 8

void ledger_set_full(struct ledger *l, enum evrec_overflow full)
{
	l->full = full;
}

/* Whether there is room after so many busy nodes, with so many bytes, were removed. */
static bool has_room(const struct ledger *l, size_t len, size_t nodes, size_t bytes)
{
	const size_t size = sizeof(struct node) + len, busy_bytes = l->busy_bytes - bytes;

	return l->busy - nodes < l->limits.max_events && busy_bytes < l->limits.max_bytes &&
	       size <= l->limits.max_bytes - busy_bytes;
}

/* The list from which a node is dropped for a new one. NULL: the new one is dropped. */
static const struct waits *choose(const struct ledger *l, bool important)
{
	if (!important && l->full == EVREC_DROP_NEWEST) {
		return NULL;
	}
	return l->waits[0].head == NULL && important && l->full == EVREC_DROP_OLDEST ? &l->waits[1] : &l->waits[0];
}

static struct node *first_of(const struct ledger *l, const struct waits *waits)
{
	return l->full == EVREC_DROP_OLDEST ? waits->head : waits->tail;
}

static void drop(struct ledger *l, struct node *node)
{
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		l->ended[i].dropped[EVREC_CAUSE_QUEUE_FULL] += node->left[i];
	}
	nodes_remove(&l->queue, node);
	l->busy--;
	l->busy_bytes -= node_size(node);
	node_unlink(l, node);
	nodes_push(&l->dropped, node);
}

bool ledger_make_room(struct ledger *l, size_t len, bool important)
{
	const struct waits *waits = choose(l, important);
	size_t nodes = 0, bytes = 0;
	struct node *node;

	for (node = waits == NULL ? NULL : first_of(l, waits);
	     node != NULL && nodes < MOST && !has_room(l, len, nodes, bytes);
	     node = l->full == EVREC_DROP_OLDEST ? node->waits_next : node->waits_prev) {
		nodes++;
		bytes += node_size(node);
	}
	if (!has_room(l, len, nodes, bytes)) {
		return false;
	}
	while (nodes-- > 0) {
		drop(l, first_of(l, waits));
	}
	return true;
}

bool ledger_next_dropped(struct ledger *l, evrec_str *bytes, uint32_t *n)
{
	struct node *node = l->dropped.head;

	if (node == NULL) {
		return false;
	}
	nodes_remove(&l->dropped, node);
	*bytes = (evrec_str){ node->bytes, node->len };
	*n = node_left(node);
	/* Not `taken`, which is still in use while another thread records. */
	node_free(l->told);
	l->told = node;
	return true;
}
