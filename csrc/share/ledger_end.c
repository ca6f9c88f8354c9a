/* How occurrences leave a ledger without an acknowledgement: taken by this process, left to the owner, or dropped. */
#include "share/ledger_inner.h"

static void take_node(struct ledger *l, struct node *node)
{
	node->known = false;
	nodes_remove(&l->queue, node);
	l->busy--;
	l->busy_bytes -= node_size(node);
	node_unlink(l, node);
	node_free(l->taken);
	l->taken = node;
}

/* The ledger must be disconnected: then all nodes are in the queue. */
bool ledger_take(struct ledger *l, struct ledger_item *item, struct frame_event *event)
{
	struct node *node = l->queue.head;

	if (node == NULL || !node_make_name(l, node) ||
	    frame_event_read((evrec_str){ node->bytes, node->len }, event, NULL) != 0) {
		return false;
	}
	*item = node_next_item(node);
	if (item->times.n == node->unsent) {
		take_node(l, node);
		return true;
	}
	for (unsigned i = 0; i < l->sinks; i++) {
		node->left[i] -= (item->flags & FRAME_ENDED(i)) == 0 ? item->times.n : 0;
	}
	node_went(l, node, item->times.n);
	node_end_waiting(l, node);
	node->known = true;
	return true;
}

/* Occurrences of the node that were sent, and have not ended for the sink. */
static uint32_t sent_to(const struct node *node, size_t sink)
{
	return node->left[sink] - (node->unsent - node_resend(node)) - node->resend[sink];
}

uint64_t ledger_leave_to_owner(struct ledger *l)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l->slots_len; i++) {
		struct node *node = l->slots[i].node;

		if (node == NULL || node_left(node) == node->unsent) {
			continue;
		}
		n += node_left(node) - node->unsent;
		for (size_t sink = 0; sink < l->sinks; sink++) {
			const uint32_t sent = sent_to(node, sink);

			l->ended[sink].forwarded += sent;
			node->left[sink] -= sent;
		}
		if (node_left(node) == 0) {
			node_become_idle(l, node);
		}
	}
	return n;
}

bool ledger_drop_next(struct ledger *l, enum evrec_cause cause, struct ledger_item *item)
{
	struct node *node = l->queue.head;

	if (node == NULL) {
		return false;
	}
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		l->ended[i].dropped[cause] += node->left[i];
	}
	*item = item_of(node, node->unsent, 0);
	take_node(l, node);
	return true;
}
