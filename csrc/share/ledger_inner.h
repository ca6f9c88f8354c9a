/*
 * ledger_inner.h - the structs and internal functions of a ledger, for its files.
 *
 *   ledger.c        recording, sending, the answers, counts
 *   ledger_end.c    how occurrences leave it without an acknowledgement
 *   ledger_node.c   nodes, their table and their slots
 *   ledger_full.c   what a full ledger drops
 *   ledger_waits.c  nodes that may be dropped
 */
#ifndef EVREC_LEDGER_INNER_H
#define EVREC_LEDGER_INNER_H

#include "share/ledger.h"

#pragma GCC visibility push(hidden)

#define NONE UINT32_MAX

struct node {
	struct node *next_of_hash;
	struct node *next, *prev; /* in the queue or among the idle ones */
	uint64_t hash;
	uint32_t slot;                /* the event's id */
	uint32_t unsent;              /* occurrences */
	uint32_t left[FRAME_SINKS];   /* occurrences, unsent ones too, that have not ended for the sink */
	uint32_t resend[FRAME_SINKS]; /* how many of the unsent ones, the first, were sent over an earlier connection */
	int64_t first, last;          /* of the unsent occurrences */
	int64_t first_sent;           /* of the occurrences that were sent and not acknowledged */
	struct buf name;              /* empty: not made yet */
	bool known;                   /* the owner has the event */
	bool again;                   /* an earlier owner had occurrences that it has not acknowledged */
	bool important;               /* a Warning */
	bool waits;                   /* no occurrence was sent or taken: it may be dropped */
	struct node *waits_next, *waits_prev;
	size_t len;
	char bytes[];
};

struct list {
	struct node *head, *tail;
	size_t len;
};

/* Nodes that wait, in the order of their first occurrence; with EVREC_DROP_OLDEST, in that of their last one. */
struct waits {
	struct node *head, *tail;
};

/* The owner may still know a slot's event after the node was removed. */
struct slot {
	struct node *node;
	uint32_t next_free;
	uint32_t next_stale;
	bool stale; /* the owner knows an event that it is to forget */
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
	enum evrec_overflow full;
	struct waits waits[2];   /* of Warnings the second */
	struct list dropped;     /* not yet returned by ledger_next_dropped */
	size_t busy, busy_bytes; /* nodes with occurrences that are not acknowledged */
	struct node *taken;      /* by ledger_take */
	struct node *told;       /* by ledger_next_dropped */
	uint32_t next_id;        /* of the last item of ledger_next */
	uint32_t next_n;
	struct {
		uint64_t forwarded, rate_limited, dropped[EVREC_CAUSES];
	} ended[FRAME_SINKS];
};

void nodes_push(struct list *list, struct node *node);
void nodes_remove(struct list *list, struct node *node);

/* `n` of the node's occurrences; `flags`: those of the frame beside FRAME_AGAIN. */
static inline struct ledger_item item_of(const struct node *node, uint32_t n, unsigned flags)
{
	return (struct ledger_item){
		.times = { node->slot, n, node->first, node->last },
		.known = node->known,
		.flags = (uint16_t)(flags | (node->again && !node->known ? FRAME_AGAIN : 0)),
		.name = buf_str(&node->name),
		.bytes = { node->bytes, node->len },
	};
}

/* ---- ledger.c ---- */

/* Gives the node a name, if it has none yet. False: no memory. */
bool node_make_name(struct ledger *l, struct node *node);
/* The next occurrences to be sent: all of them wait for the outcome at the same sinks. */
struct ledger_item node_next_item(const struct node *node);
/* The `n` occurrences of node_next_item were sent or taken. */
void node_went(struct ledger *l, struct node *node, uint32_t n);

/* ---- ledger_full.c ---- */

/* Makes room for an event of so many bytes, if its rules allow it. False: there is no room. */
bool ledger_make_room(struct ledger *l, size_t len, bool important);

/* ---- ledger_waits.c ---- */

/* node_begin_waiting: no occurrence of the node was sent yet; node_end_waiting: one was, or the node is removed. */
void node_begin_waiting(struct ledger *l, struct node *node);
void node_end_waiting(struct ledger *l, struct node *node); /* idempotent */
/* A node that waits has happened again. */
void node_happened(struct ledger *l, struct node *node);

/* ---- ledger_node.c ---- */

/* The memory of a node. */
size_t node_size(const struct node *node);
/* Occurrences that have not ended for every sink. */
uint32_t node_left(const struct node *node);
/* Occurrences that are to be sent again. */
uint32_t node_resend(const struct node *node);
struct node *node_find(const struct ledger *l, uint64_t hash, evrec_str bytes);
/* A node without occurrences, which is neither busy nor idle yet. NULL: no memory. */
struct node *node_new(struct ledger *l, uint64_t hash, evrec_str bytes);
/* Removes the node from the table and its slot. If the owner knows the event, it is to forget it. */
void node_unlink(struct ledger *l, struct node *node);
void node_free(struct node *node); /* NULL is fine */

/* Frees an idle node. */
void node_forget(struct ledger *l, struct node *node);
/* Move a node from idle to busy, and back. The latter may free other idle nodes. */
void node_remove_idle(struct ledger *l, struct node *node);
void node_become_idle(struct ledger *l, struct node *node);
/* The owner has forgotten the first stale slot. */
void node_forget_stale(struct ledger *l);

#pragma GCC visibility pop

#endif
