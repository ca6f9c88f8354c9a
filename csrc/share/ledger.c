#include "share/ledger.h"

#include "base/lru.h"
#include "event/event.h"

/* Idle nodes that are kept, and the memory of them. */
#define IDLE_MAX 256
#define IDLE_BYTES_MAX (1024 * 1024)
#define SLOTS_MIN 16
#define NONE UINT32_MAX

struct node {
	struct node *next_of_hash;
	struct node *next, *prev; /* in the queue or among the idle ones */
	uint64_t hash;
	uint32_t slot;              /* the event's id */
	uint32_t unsent;            /* occurrences */
	uint32_t left[FRAME_SINKS]; /* occurrences, unsent ones too, that have not ended for the sink */
	int64_t first, last;        /* of the unsent occurrences */
	int64_t first_sent;         /* of the occurrences that were sent and not acknowledged */
	struct buf name;            /* empty: not made yet */
	bool known;                 /* the owner has the event */
	bool again;                 /* an earlier owner had occurrences that it has not acknowledged */
	size_t len;
	char bytes[];
};

struct list {
	struct node *head, *tail;
	size_t len;
};

/* The owner may know a slot's event longer than the slot has a node. */
struct slot {
	struct node *node;
	uint32_t next_free;
	uint32_t next_stale;
	bool stale; /* the owner knows an event that is to be forgotten */
};

struct ledger {
	struct ledger_limits limits;
	size_t sinks;
	struct node **table; /* by hash; table_len is a power of two */
	size_t table_len;
	struct slot *slots;
	uint32_t slots_len, free, stale;
	struct list queue; /* nodes with unsent occurrences, in the order in which they came */
	struct list idle;  /* the one that was used last is the tail */
	size_t idle_bytes;
	size_t busy, busy_bytes; /* nodes with occurrences that are not acknowledged */
	struct node *taken;      /* by ledger_take */
	uint32_t next_id;        /* of the item that ledger_next gave */
	uint32_t next_n;
	struct {
		uint64_t forwarded, rate_limited, dropped[EVREC_CAUSES];
	} ended[FRAME_SINKS];
};

/* ---- lists ---- */

static void list_push(struct list *list, struct node *node)
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

static void list_remove(struct list *list, struct node *node)
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

static size_t node_size(const struct node *node)
{
	return sizeof(*node) + node->len + node->name.cap;
}

/* Occurrences that have not ended for every sink. */
static uint32_t node_left(const struct node *node)
{
	uint32_t most = 0;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		most = node->left[i] > most ? node->left[i] : most;
	}
	return most;
}

static struct node **bucket(const struct ledger *l, uint64_t hash)
{
	return &l->table[hash & (l->table_len - 1)];
}

static struct node *find(const struct ledger *l, uint64_t hash, evrec_str bytes)
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

static struct node *node_new(struct ledger *l, uint64_t hash, evrec_str bytes)
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

/* Takes it out of the table and its slot. The owner is to forget it, if it knows it. */
static void node_unlink(struct ledger *l, struct node *node)
{
	struct slot *slot = &l->slots[node->slot];
	struct node **at = bucket(l, node->hash);

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

static void node_free(struct node *node)
{
	if (node != NULL) {
		buf_free(&node->name);
		mem_free(node);
	}
}

/* ---- busy and idle ---- */

static void remove_idle(struct ledger *l, struct node *node)
{
	list_remove(&l->idle, node);
	l->idle_bytes -= node_size(node);
}

static void become_idle(struct ledger *l, struct node *node)
{
	l->busy--;
	l->busy_bytes -= node_size(node);
	/* An event that happens again is another one for an owner that has forgotten it. */
	node->again = false;
	buf_free(&node->name);
	list_push(&l->idle, node);
	l->idle_bytes += node_size(node);
	while (l->idle.len > IDLE_MAX || l->idle_bytes > IDLE_BYTES_MAX) {
		struct node *oldest = l->idle.head;

		remove_idle(l, oldest);
		node_unlink(l, oldest);
		node_free(oldest);
	}
}

static bool has_room(const struct ledger *l, size_t len)
{
	const size_t size = sizeof(struct node) + len;

	return l->busy < l->limits.max_events && l->busy_bytes < l->limits.max_bytes &&
	       size <= l->limits.max_bytes - l->busy_bytes;
}

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
		mem_free(l->slots);
		mem_free(l->table);
		mem_free(l);
	}
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
static bool check_event(evrec_str bytes, enum evrec_cause *cause)
{
	struct frame_event event;
	const int code = event_read(bytes, &event, NULL);

	if (code == 0) {
		event_destroy(&event);
	} else {
		*cause = code == EVREC_ENOMEM ? EVREC_CAUSE_MEMORY : EVREC_CAUSE_UNFIT;
	}
	return code == 0;
}

static struct node *node_for(struct ledger *l, evrec_str bytes, enum evrec_cause *cause)
{
	const uint64_t hash = lru_hash(bytes);
	struct node *node = find(l, hash, bytes);

	*cause = EVREC_CAUSE_QUEUE_FULL;
	if (node != NULL && node_left(node) != 0) {
		return node_left(node) < UINT32_MAX ? node : NULL;
	}
	if (!has_room(l, bytes.len)) {
		return NULL;
	}
	if (node != NULL) {
		remove_idle(l, node);
	} else if (check_event(bytes, cause)) {
		*cause = EVREC_CAUSE_MEMORY;
		node = node_new(l, hash, bytes);
	}
	if (node != NULL) {
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
		list_push(&l->queue, node);
	}
	node->last = at;
	return true;
}

/* ---- sending ---- */

/* False: no memory. */
static bool make_name(struct ledger *l, struct node *node)
{
	struct frame_event event;

	if (node->name.len != 0) {
		return true;
	}
	if (event_read((evrec_str){ node->bytes, node->len }, &event, NULL) != 0) {
		return false;
	}
	l->busy_bytes -= node->name.cap;
	buf_clear(&node->name);
	name_make(&node->name, event.fields.regarding.name, node->first);
	l->busy_bytes += node->name.cap;
	event_destroy(&event);
	if (node->name.failed) {
		buf_clear(&node->name);
		return false;
	}
	return true;
}

static struct ledger_item item_of(const struct node *node, uint32_t n)
{
	return (struct ledger_item){
		.times = { node->slot, n, node->first, node->last },
		.known = node->known,
		.again = node->again,
		.name = buf_str(&node->name),
		.bytes = { node->bytes, node->len },
	};
}

bool ledger_next(struct ledger *l, struct ledger_item *item)
{
	struct node *node = l->queue.head;

	if (l->stale != NONE) {
		*item = (struct ledger_item){ .times = { .id = l->stale }, .known = true };
		l->next_n = 0;
		return true;
	}
	if (node == NULL || (!node->known && !make_name(l, node))) {
		return false;
	}
	l->next_id = node->slot;
	l->next_n = node->unsent < LEDGER_SEND_MAX ? node->unsent : LEDGER_SEND_MAX;
	*item = item_of(node, l->next_n);
	return true;
}

static void forget_stale(struct ledger *l)
{
	struct slot *slot = &l->slots[l->stale];

	slot->stale = false;
	l->stale = slot->next_stale;
}

void ledger_sent(struct ledger *l)
{
	struct node *node;

	if (l->next_n == 0) {
		forget_stale(l);
		return;
	}
	node = l->slots[l->next_id].node;
	if (node_left(node) == node->unsent) {
		node->first_sent = node->first;
	}
	node->known = true;
	node->unsent -= l->next_n;
	if (node->unsent == 0) {
		list_remove(&l->queue, node);
	}
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
		become_idle(l, node);
	}
	return n;
}

static void disconnect_node(struct ledger *l, struct node *node)
{
	const uint32_t left = node_left(node);

	if (left == node->unsent) {
		if (node->known) {
			/* All that was sent is acknowledged: the next owner makes another event of what comes. */
			node->again = false;
			node->name.len = 0;
		}
		node->known = false;
		return;
	}
	node->known = false;
	node->again = true;
	node->first = node->first_sent;
	if (node->unsent == 0) {
		list_push(&l->queue, node);
	}
	node->unsent = left;
}

void ledger_disconnect(struct ledger *l)
{
	while (l->idle.head != NULL) {
		struct node *node = l->idle.head;

		remove_idle(l, node);
		node_unlink(l, node);
		node_free(node);
	}
	while (l->stale != NONE) {
		forget_stale(l);
	}
	for (uint32_t i = 0; i < l->slots_len; i++) {
		if (l->slots[i].node != NULL) {
			disconnect_node(l, l->slots[i].node);
		}
	}
}

/* ---- the end ---- */

static void take_node(struct ledger *l, struct node *node)
{
	list_remove(&l->queue, node);
	l->busy--;
	l->busy_bytes -= node_size(node);
	node_unlink(l, node);
	node_free(l->taken);
	l->taken = node;
}

/* The ledger must be disconnected: then all nodes are in the queue. */
bool ledger_take(struct ledger *l, struct ledger_item *item)
{
	struct node *node = l->queue.head;

	if (node == NULL || !make_name(l, node)) {
		return false;
	}
	*item = item_of(node, node->unsent);
	take_node(l, node);
	return true;
}

void ledger_drop_all(struct ledger *l, enum evrec_cause cause, void (*func)(void *ctx, evrec_str bytes, uint32_t n),
                     void *ctx)
{
	ledger_disconnect(l);
	while (l->queue.head != NULL) {
		struct node *node = l->queue.head;

		for (size_t i = 0; i < FRAME_SINKS; i++) {
			l->ended[i].dropped[cause] += node->left[i];
		}
		func(ctx, (evrec_str){ node->bytes, node->len }, node->unsent);
		take_node(l, node);
	}
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
