/* The nodes of which no occurrence was sent, the oldest first: these may be dropped. */
#include "share/ledger_inner.h"

void node_begin_waiting(struct ledger *l, struct node *node)
{
	struct waits *waits = &l->waits[node->important];

	node->waits = true;
	node->waits_next = NULL;
	node->waits_prev = waits->tail;
	if (waits->tail != NULL) {
		waits->tail->waits_next = node;
	} else {
		waits->head = node;
	}
	waits->tail = node;
}

void node_end_waiting(struct ledger *l, struct node *node)
{
	struct waits *waits = &l->waits[node->important];

	if (!node->waits) {
		return;
	}
	node->waits = false;
	if (node->waits_prev != NULL) {
		node->waits_prev->waits_next = node->waits_next;
	} else {
		waits->head = node->waits_next;
	}
	if (node->waits_next != NULL) {
		node->waits_next->waits_prev = node->waits_prev;
	} else {
		waits->tail = node->waits_prev;
	}
}

void node_happened(struct ledger *l, struct node *node)
{
	if (node->waits && l->full == EVREC_DROP_OLDEST) {
		node_end_waiting(l, node);
		node_begin_waiting(l, node);
	}
}
