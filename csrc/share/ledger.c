#include "share/ledger_inner.h"

#include "base/lru.h"
#include "event/event.h"

struct ledger *ledger_new(const struct ledger_limits *limits)
{
	struct ledger *l = mem_zalloc(sizeof(*l));

	if (l != NULL) {
		l->limits = *limits;
		l->free = l->stale = NONE;
	}
	return l;
}

void ledger_free(struct ledger *l)
{
	if (l != NULL) {
		for (uint32_t i = 0; i < l->slots_len; i++) {
			node_free(l->slots[i].node);
		}
		node_free(l->taken);
		node_free(l->told);
		while (l->dropped.head != NULL) {
			struct node *node = l->dropped.head;

			nodes_remove(&l->dropped, node);
			node_free(node);
		}
		mem_free(l->slots);
		mem_free(l->table);
		mem_free(l);
	}
}

void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits)
{
	l->limits = *limits;
}

void ledger_set_sinks(struct ledger *l, size_t sinks)
{
	l->sinks = sinks;
}

/* ---- recording ---- */

void ledger_drop(struct ledger *l, enum evrec_cause cause)
{
	for (size_t i = 0; i < l->sinks; i++) {
		l->ended[i].dropped[cause]++;
	}
}

/* Whether an owner would take the event. */
static bool check_event(evrec_str bytes, bool *important, enum evrec_cause *cause)
{
	struct frame_event event;
	const int code = frame_event_read(bytes, &event, NULL);

	if (code == 0) {
		*important = str_eq(event.fields.type, EVREC_STR("Warning"));
		frame_event_destroy(&event);
	} else {
		*cause = code == EVREC_ENOMEM ? EVREC_CAUSE_MEMORY : EVREC_CAUSE_UNFIT;
	}
	return code == 0;
}

static struct node *node_for(struct ledger *l, evrec_str bytes, enum evrec_cause *cause)
{
	const uint64_t hash = lru_hash(bytes);
	struct node *node = node_find(l, hash, bytes);
	bool important = node != NULL && node->important;

	*cause = EVREC_CAUSE_QUEUE_FULL;
	if (node != NULL && node_left(node) != 0) {
		return node_left(node) < UINT32_MAX ? node : NULL;
	}
	if ((node == NULL && !check_event(bytes, &important, cause)) || !ledger_make_room(l, bytes.len, important)) {
		return NULL;
	}
	if (node != NULL) {
		node_remove_idle(l, node);
	} else {
		*cause = EVREC_CAUSE_MEMORY;
		node = node_new(l, hash, bytes);
	}
	if (node != NULL) {
		node->important = important;
		l->busy++;
		l->busy_bytes += node_size(node);
	}
	return node;
}

bool ledger_add(struct ledger *l, evrec_str bytes, int64_t at, enum evrec_cause *cause)
{
	struct node *node;

	*cause = EVREC_CAUSE_UNFIT;
	node = bytes.len > FRAME_EVENT_MAX - FRAME_MAX ? NULL : node_for(l, bytes, cause);
	if (node == NULL) {
		ledger_drop(l, *cause);
		return false;
	}
	for (size_t i = 0; i < l->sinks; i++) {
		node->left[i]++;
	}
	if (node->unsent++ == 0) {
		node->first = at;
		nodes_push(&l->queue, node);
		if (node_left(node) == node->unsent && !node->again) {
			node_begin_waiting(l, node);
		}
	} else {
		node_happened(l, node);
	}
	node->last = at;
	return true;
}

/* ---- sending ---- */

bool node_make_name(struct ledger *l, struct node *node)
{
	struct frame_event event;

	if (node->name.len != 0) {
		return true;
	}
	if (frame_event_read((evrec_str){ node->bytes, node->len }, &event, NULL) != 0) {
		return false;
	}
	l->busy_bytes -= node->name.cap;
	buf_clear(&node->name);
	name_make(&node->name, event.fields.regarding.name, node->first);
	l->busy_bytes += node->name.cap;
	frame_event_destroy(&event);
	if (node->name.failed) {
		buf_clear(&node->name);
		return false;
	}
	return true;
}

struct ledger_item node_next_item(const struct node *node)
{
	const uint32_t most = node_resend(node);
	unsigned flags = 0;
	uint32_t n = node->unsent, less = 0;

	if (most != 0) {
		flags = FRAME_RESENT;
		for (unsigned i = 0; i < FRAME_SINKS; i++) {
			if (node->resend[i] < most) {
				flags |= FRAME_ENDED(i);
				less = node->resend[i] > less ? node->resend[i] : less;
			}
		}
		n = most - less;
	}
	return item_of(node, n < LEDGER_SEND_MAX ? n : LEDGER_SEND_MAX, flags);
}

void node_went(struct ledger *l, struct node *node, uint32_t n)
{
	const uint32_t most = node_resend(node);

	for (size_t i = 0; i < FRAME_SINKS && most != 0; i++) {
		node->resend[i] = node->resend[i] < most - n ? node->resend[i] : most - n;
	}
	node->unsent -= n;
	node->first = node->last;
	if (node->unsent == 0) {
		nodes_remove(&l->queue, node);
	} else if (most == n) {
		/* Other nodes have occurrences to be sent again. */
		nodes_remove(&l->queue, node);
		nodes_push(&l->queue, node);
	}
}

bool ledger_next(struct ledger *l, struct ledger_item *item)
{
	struct node *node = l->queue.head;

	if (l->stale != NONE) {
		*item = (struct ledger_item){ .times = { .id = l->stale }, .known = true };
		l->next_n = 0;
		return true;
	}
	if (node == NULL || (!node->known && !node_make_name(l, node))) {
		return false;
	}
	l->next_id = node->slot;
	*item = node_next_item(node);
	l->next_n = item->times.n;
	return true;
}

void ledger_sent(struct ledger *l)
{
	struct node *node;

	if (l->next_n == 0) {
		node_forget_stale(l);
		return;
	}
	node = l->slots[l->next_id].node;
	if (node_left(node) == node->unsent) {
		node->first_sent = node->first;
	}
	node_end_waiting(l, node);
	node->known = true;
	node_went(l, node, l->next_n);
}

/* ---- the answers ---- */

static void count_end(struct ledger *l, const struct frame_ack *ack, uint32_t n)
{
	if (ack->end == FRAME_FORWARDED) {
		l->ended[ack->sink].forwarded += n;
	} else if (ack->end == FRAME_RATE_LIMITED) {
		l->ended[ack->sink].rate_limited += n;
	} else {
		l->ended[ack->sink].dropped[ack->end] += n;
	}
}

uint32_t ledger_ack(struct ledger *l, const struct frame_ack *ack, evrec_str *bytes)
{
	struct node *node = ack->id < l->slots_len ? l->slots[ack->id].node : NULL;
	uint32_t n;

	if (node == NULL || node->left[ack->sink] <= node->unsent) {
		return 0;
	}
	n = node->left[ack->sink] - node->unsent;
	n = n < ack->n ? n : ack->n;
	node->left[ack->sink] -= n;
	count_end(l, ack, n);
	*bytes = (evrec_str){ node->bytes, node->len };
	if (node_left(node) == 0) {
		node_become_idle(l, node);
	}
	return n;
}

static void disconnect_node(struct ledger *l, struct node *node)
{
	const uint32_t left = node_left(node), fresh = node->unsent - node_resend(node);

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		node->resend[i] = node->left[i] < fresh ? 0 : node->left[i] - fresh;
	}
	if (left == node->unsent) {
		if (node->known && left == fresh) {
			/* All sent occurrences are acknowledged: a later owner makes a new event of later ones. */
			node->again = false;
			node->name.len = 0;
		}
		node->known = false;
		if (!node->again && !node->waits) {
			node_begin_waiting(l, node);
		}
		return;
	}
	node->known = false;
	node->again = true;
	node->first = node->first_sent;
	if (node->unsent == 0) {
		nodes_push(&l->queue, node);
	}
	node->unsent = left;
}

/* Nodes with occurrences to be sent again come first. */
static void order_queue(struct ledger *l)
{
	struct list queue = l->queue;
	struct node *node, *next;

	l->queue = (struct list){ NULL, NULL, 0 };
	for (int again = 1; again >= 0; again--) {
		for (node = queue.head; node != NULL; node = next) {
			next = node->next;
			if ((node_resend(node) != 0) == again) {
				nodes_remove(&queue, node);
				nodes_push(&l->queue, node);
			}
		}
	}
}

void ledger_disconnect(struct ledger *l)
{
	while (l->idle.head != NULL) {
		node_forget(l, l->idle.head);
	}
	while (l->stale != NONE) {
		node_forget_stale(l);
	}
	for (uint32_t i = 0; i < l->slots_len; i++) {
		if (l->slots[i].node != NULL) {
			disconnect_node(l, l->slots[i].node);
		}
	}
	order_queue(l);
}

/* ---- counts ---- */

bool ledger_has_again(const struct ledger *l)
{
	bool again = false;

	for (uint32_t i = 0; i < l->slots_len && !again; i++) {
		again = l->slots[i].node != NULL && l->slots[i].node->again;
	}
	return again;
}

bool ledger_is_empty(const struct ledger *l)
{
	return l->busy == 0;
}

size_t ledger_events(const struct ledger *l)
{
	return l->busy;
}

size_t ledger_bytes(const struct ledger *l)
{
	return l->busy_bytes;
}

void ledger_count(const struct ledger *l, size_t sink, struct ledger_counts *counts)
{
	*counts = (struct ledger_counts){ l->ended[sink].forwarded, l->ended[sink].rate_limited, 0, { 0 } };
	memcpy(counts->dropped, l->ended[sink].dropped, sizeof(counts->dropped));
	for (uint32_t i = 0; i < l->slots_len; i++) {
		counts->pending += l->slots[i].node == NULL ? 0 : l->slots[i].node->left[sink];
	}
}
