/* entry.h - one write in an outbox: its links in the outbox's lists, the state of its tries, its item. */
#ifndef EVREC_ENTRY_H
#define EVREC_ENTRY_H

#include "outbox/journal.h"
#include "outbox/protocol.h"
#include "outbox/receipt.h"

#pragma GCC visibility push(hidden)

#define OUTBOX_NAME_SIZE sizeof(((struct outcome *)0)->name)

/* The object's name and resource version, from an answer or a renaming: two strings, each with a NUL. */
struct identity {
	size_t version_at; /* the resource version; the name is at 0 */
	char text[];
};

/* Why an entry backs off. */
enum backoff_why {
	BACKOFF_ANSWERED,   /* the server answered */
	BACKOFF_UNANSWERED, /* there was no answer: due as soon as the server answers anything */
	BACKOFF_HELD,       /* a probe of its namespace is under way; holding it is no try */
	BACKOFF_WHYS
};

/*
 * The queue of a pending entry whose row in the spool's own file is to be written: for the first time, or because the
 * entry has changed since.
 */
enum row_queue {
	ROW_QUEUE_NONE,      /* its row is up to date, or it needs none: a follow-up whose entry has a row */
	ROW_QUEUE_NORMAL,    /* it has no row yet; by age */
	ROW_QUEUE_IMPORTANT, /* likewise */
	ROW_QUEUE_CHANGED,   /* it has changed since its row was written; by the time of the change */
	ROW_QUEUE_WRITING,   /* it was given to the spooler, and has not changed since */
	ROW_QUEUES
};

/*
 *             submit                take                    answer
 *   (none) ----------> WAITING ------------> IN_FLIGHT ----------------> ANSWERED --collect--> (none)
 *     fold into it: submit  ^ due                 |  \ make or fold into its follow-up: submit
 *                        BACKOFF <----------------'
 *
 *             submit, with a time                 due, or released
 *   (none) -----------------------> DEFERRED ------------------------> WAITING
 *     fold into it: submit, which sets the time anew
 *
 *             restore, if an earlier row of its event is not answered     that one is answered
 *   (none) ----------------------------------------------------> QUEUED ----------------------> WAITING
 *
 *             take, if rows go first       take, after the last row was answered, or after 30 s
 *   WAITING ------------------------> HELD ---------------------------------------------------> IN_FLIGHT
 *                                        \ take, if the outbox is closed and rows stay in the spool
 *                                         `---------------------------------------------------> KEPT
 *
 * If all occurrences of a follow-up have a time, it is deferred while it follows, and DEFERRED after the answer. An
 * ANSWERED entry that has nothing to tell the pipeline is freed instead of collected (outbox_skip_plain_answers).
 */
enum entry_state {
	ENTRY_WAITING,
	ENTRY_QUEUED,    /* a restored row */
	ENTRY_HELD,      /* an entry of this process waits: all restored rows go first */
	ENTRY_FOLLOWING, /* holds the occurrences that came while the entry of its id was in flight */
	ENTRY_DEFERRED,
	ENTRY_BACKOFF,
	ENTRY_IN_FLIGHT,
	ENTRY_GIVEN_UP, /* in flight, but already counted as dropped: the answer is ignored */
	ENTRY_KEPT,     /* will not be sent by this process: the spool gets it */
	ENTRY_ANSWERED, /* written, dropped, or spooled with receipts; waits to be collected, or is freed at once */
	ENTRY_STATES
};

/* The ids of restored entries have this bit; those of the pipeline count up from 1 and never reach it. */
#define ENTRY_RESTORED (UINT64_C(1) << 63)

struct entry_list {
	struct entry *head, *tail;
};

struct entry {
	/*
	 * The chain of the id table. The table has the latest entry of each id, but no follow-up and no QUEUED entry.
	 */
	struct entry *hash_next;
	struct entry *prev, *next;   /* the list of its state; a FOLLOWING entry is on one only if it is deferred */
	struct entry *older, *newer; /* while pending: by last occurrence, among those of its importance */
	struct entry *follow_up;     /* or NULL */
	struct entry_list
		rows_behind; /* QUEUED: later rows of its event, in order; only in the entry that is in the table */
	uint64_t id;
	enum entry_state state;
	enum verb verb;
	void *item;       /* the payload; NULL once all occurrences were written or spooled; kept if one was dropped */
	uint32_t count;   /* occurrences; 0: all submits were silent */
	uint32_t written; /* earlier occurrences, already written */
	uint32_t
		maybe_received; /* how many of `count` were in a create that the server may have carried out; 0: none */
	uint32_t acked;  /* how many of `count` the server has acknowledged, in a patch that is to be sent once more */
	bool maybe_late; /* a try of this patch may be carried out later still, and set the count back */
	bool renamed;    /* it was given its second name */
	bool again;      /* an earlier process or an earlier write may have created the object under this name */
	bool known;     /* an earlier entry or process has counted the object; false after the first new verb or name */
	bool missing;   /* a patch did not find the known object: another write may create it before this create */
	unsigned tries; /* failed tries with the present verb and name */
	unsigned failed; /* all tries that had to be repeated */
	bool important;
	bool deferred; /* DEFERRED, or FOLLOWING: its occurrences are counted, not pending */
	bool apart;    /* the item is a heap block, and not behind the entry in its block */
	int64_t row; /* its row in the spool; 0: none. > 0: in the file that it was restored from; < 0: in the own file */
	enum row_queue row_queue;
	enum backoff_why why;              /* BACKOFF */
	struct entry *row_prev, *row_next; /* in the queue */
	int64_t row_due;                   /* monotonic: when its row is to be written */
	uint64_t epoch;                    /* BACKOFF: see backoff.h */
	int64_t due;    /* BACKOFF: when to try again, unless its epoch has ended; deferred: when to send it */
	size_t heap_at; /* BACKOFF and DEFERRED: its index in the heap */
	/*
	 * WAITING: since when it waits for a batch to fill; INT64_MIN: it does not wait for one. FOLLOWING: when it was
	 * made.
	 */
	int64_t since;
	int64_t last;              /* the last occurrence, monotonic ns */
	size_t bytes;              /* the memory that it takes, as counted */
	struct receipt *receipts;  /* those of its occurrences; NULL: none has one */
	struct identity *identity; /* from the outbox's pool; NULL: the item's name is valid */
	uint32_t base;             /* of VERDICT_ADOPT; 0: none */
	uint32_t note;             /* the number of its note in the journal; 0: none */
	enum evrec_cause cause;
	bool dropped; /* ANSWERED, for `cause` */
	bool forgone; /* ANSWERED, not written for `cause`, but without an occurrence to count as dropped */
	bool spooled; /* ANSWERED: it is in the spool, and is collected only for its receipts */
	bool has_own; /* one of its occurrences has no receipt */
};

/*
 * The name from the server or from a renaming, empty: the item's name is valid; and the resource version, empty: no
 * answer had one.
 */
static inline const char *entry_name(const struct entry *entry)
{
	return entry->identity == NULL ? "" : entry->identity->text;
}

static inline const char *entry_resource_version(const struct entry *entry)
{
	return entry->identity == NULL ? "" : entry->identity->text + entry->identity->version_at;
}

/*
 * Whether a conflict of this create is with the entry's own object: an earlier try, another process or another write may
 * have created it.
 */
static inline bool entry_may_exist(const struct entry *entry)
{
	return entry->maybe_received != 0 || entry->again || entry->missing;
}

/*
 * The verb of the entry's row, which has `count` occurrences. A patch, if another process may have created the object with
 * fewer: the next process does not know of this doubt, and would take a create's conflict for another client's object.
 */
enum verb entry_verb_in_row(const struct entry *entry, uint32_t count);
/* Sets the row of the entry and its follow-up, but for the item. */
void entry_describe(const struct entry *entry, struct outbox_row *row);
/* Sets the entry's state. A debug build traps unless the step is legal. */
void entry_enter(struct entry *entry, enum entry_state state);

void list_append(struct entry_list *list, struct entry *entry);
void list_prepend(struct entry_list *list, struct entry *entry);
void list_remove(struct entry_list *list, struct entry *entry);
struct entry *list_shift(struct entry_list *list); /* removes and returns the first; NULL: the list is empty */

#pragma GCC visibility pop

#endif
