/*
 * outbox_inner.h - the outbox's inside, for its files, which call each other in this order:
 *
 *   memory.c   entries, their items and identities, from a pool
 *   life.c     made, closed, emptied, waited for, freed
 *   outbox.c   collect, messages, counts
 *   submit.c   what was recorded            \
 *   take.c     what is sent next             > limits.c  the bounds: who is dropped
 *   waiting.c  the entries that can be taken, and when a batch of them is due
 *   answer.c   acts on outcomes             /     settle.c   how entries leave: written, dropped, kept for the spool
 *   restore.c  from and to the spool       /          pending.c  what counts as pending: bytes, age
 *   rows.c     which rows are to be written          row_queue.c  the queues of rows
 *   deferred.c the writes whose time is to come
 *   brought.c  what a protocol has found, for the pipeline
 *   journal.c  the notes of pending writes, for the next process
 *
 * All functions here are called with the lock held.
 */
#ifndef EVREC_OUTBOX_INNER_H
#define EVREC_OUTBOX_INNER_H

#include "outbox/backoff.h"
#include "outbox/id_table.h"
#include "outbox/messages.h"
#include "outbox/namespace_blocks.h"
#include "outbox/pool.h"
#include "outbox/retry.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* Entries by their last occurrence. */
struct ages {
	struct entry *oldest, *newest;
	struct entry
		*restored; /* the last one from a spool, or an older one: where to look for the place of the next */
};

struct row_list {
	struct entry *head, *tail;
};

/* The waiting entries, which are to go in batches. All zero: each is due at once. */
struct gather {
	size_t len;       /* waiting entries */
	size_t batch;     /* so many are due at once */
	int64_t delay;    /* fewer are due once the first has waited for so long, in ns */
	bool ended;       /* those that wait now are due at once; false without any */
	bool told;        /* they are due, and the driver was woken for that */
	int64_t ended_at; /* the last waiting_end, monotonic; INT64_MIN: there was none */
};

/* The request whose writes back off together: that of the latest outcome that named one. */
struct together {
	uint64_t request; /* 0: none */
	int64_t due;      /* monotonic */
};

/* A row whose write was answered. */
struct answered_row {
	int64_t row;
	uint32_t note;
};

struct outbox {
	pthread_mutex_t lock;
	pthread_cond_t progress; /* nothing is pending any more */
	struct outbox_ops ops;
	evrec_limits limits;
	uint64_t random;
	bool closed;
	int64_t now;      /* the latest time a driver told */
	struct pool pool; /* of entries, each with its item behind it, and of identities */
	int64_t trimmed;  /* when slabs of the pool were given back last: monotonic */
	bool skips_plain_answers;
	struct receipt *spare; /* for the next receipt; or NULL */
	struct id_table table;
	struct entry_list waiting; /* in order of taking; waiting.c alone changes it */
	struct gather gather;
	bool append_only; /* a late write sets no count back */
	struct together together;
	struct entry_list in_flight;
	struct entry_list answered; /* oldest first */
	struct backoff backoff;
	struct heap deferred;                 /* entries in ENTRY_DEFERRED */
	struct entry_list deferred_following; /* follow-ups that are deferred */
	size_t deferred_len;                  /* of both kinds */
	struct ages ages[2];                  /* all that is pending; [true]: what is important */
	struct namespace_blocks blocks;
	struct outbox_stats stats;
	uint64_t uncollected[EVREC_CAUSES]; /* dropped occurrences of entries that were not collected */
	struct messages messages;
	struct brought *brought, **brought_end; /* what outbox_bring was given, in order */
	/* With a spool: */
	bool keeps;             /* at the end entries are kept for the spool, not dropped */
	bool more;              /* rows are expected of the spool */
	bool rows_first;        /* entries of this process are held until there are none, */
	int64_t rows_until;     /* or until then; INT64_MIN: nothing was taken yet */
	struct entry_list held; /* those that would have been sent, if rows did not go first */
	bool rows_stay;         /* a row was kept at the end, or is not read any more: the next process sends it */
	struct entry_list kept; /* for the spool: pending, but not to be sent in this process */
	size_t kept_len;
	int64_t rows_after;                     /* ns after which a pending entry is to have a row; INT64_MAX: never */
	struct row_list row_queues[ROW_QUEUES]; /* [ROW_QUEUE_NONE] is empty */
	size_t rows_waiting;                    /* entries that were restored from a row */
	size_t rows_own;                        /* entries with a row in the own file */
	struct answered_row *rows_answered;     /* to be forgotten; has room for those of both kinds */
	int64_t rows_answered_at;               /* the time of the first one */
	size_t rows_answered_len, rows_cap;
	struct outbox_journal *journal; /* or NULL */
	atomic_bool news; /* something was answered or reported: changed with the lock held, looked at without */
	void (*wake)(void *ctx);
	void *wake_ctx;
};

/* An entry's own memory: without its item, but with its slots in the id table and the backoff's heaps. */
#define ENTRY_BYTES (sizeof(struct entry) + sizeof(struct id_slot) + (1 + BACKOFF_WHYS) * sizeof(struct entry *))

/* ---- memory.c ---- */

/* A zeroed entry with an item of the draft. NULL: no memory. */
struct entry *entry_make(struct outbox *ob, const void *draft);
/* A zeroed entry that owns this item, which is on the heap; or NULL, and then owns none. NULL: no memory. */
struct entry *entry_make_for(struct outbox *ob, void *item);
/* Frees the item; the entry has none then. */
void entry_free_item(struct outbox *ob, struct entry *entry);
void entry_free(struct outbox *ob, struct entry *entry);
/* Room for two strings of so many bytes together, with their NULs. NULL: no memory. */
struct identity *identity_new(struct outbox *ob, size_t text_size);
/* The entry owns `identity` from now on. */
void entry_set_identity(struct outbox *ob, struct entry *entry, struct identity *identity, const char *name,
                        const char *resource_version);
/* Both in one; without memory the entry's identity stays. False: no memory. */
bool entry_identify(struct outbox *ob, struct entry *entry, const char *name, const char *resource_version);

/* ---- outbox.c ---- */

void outbox_queue_message(struct outbox *ob, const char *name, const char *message);

/* Gives the lock back, and wakes the driver if it has something to do that it does not know of. */
static inline void outbox_unlock_and_wake(struct outbox *ob, bool wake)
{
	wake = wake && ob->wake != NULL;
	(void)pthread_mutex_unlock(&ob->lock);
	if (wake) {
		ob->wake(ob->wake_ctx);
	}
}

/* ---- pending.c ---- */

/* From now on the entry counts as pending: writes, bytes, age. Its count is the caller's affair. */
void pending_add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* Likewise, for an entry from a spool, which is older than most. */
void pending_add_restored(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
void pending_remove(struct outbox *ob, struct entry *entry);
/* The entry had one more occurrence: moves it to its place by age and importance. */
void pending_touch_age(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* `follow_up` is merged into `entry`, which takes its place by age. */
void pending_take_age(struct outbox *ob, struct entry *entry, struct entry *follow_up);
/* The entry's item has changed: counts its bytes anew. */
void pending_recount_bytes(struct outbox *ob, struct entry *entry);

/* ---- waiting.c ---- */

/*
 * The entry, on no list, waits: behind all others, for others to go with it, since `since`. INT64_MIN: it waits for none, and
 * those that wait now go with it;
 */
void waiting_append(struct outbox *ob, struct entry *entry, int64_t since);
/* or before all others, and for none; */
void waiting_prepend(struct outbox *ob, struct entry *entry);
/* or behind all others, a follow-up whose entry was answered: for none if it was made before the last waiting_end. */
void waiting_append_follow_up(struct outbox *ob, struct entry *entry);
void waiting_remove(struct outbox *ob, struct entry *entry);
struct entry *waiting_shift(struct outbox *ob); /* removes and returns the first; NULL: none waits */
/* Those that wait now, and the follow-ups of those in flight, wait for no others. */
void waiting_end(struct outbox *ob, int64_t now);
/* When waiting entries, and the first deferred one, due at `first`, can be taken: <= now: at once; INT64_MAX: never. */
int64_t waiting_due(const struct outbox *ob, int64_t first, int64_t now);
/*
 * The driver is to be woken, as something may have come to wait where there were `waited` entries: there was none, or all
 * are due now, and were not.
 */
bool waiting_needs_driver(struct outbox *ob, size_t waited);
/* Whoever drives is to make memory ready. */
static inline bool outbox_wants_memory(const struct outbox *ob)
{
	return ob->pool.wanted != 0 || ob->table.wants_tier;
}

/* ---- take.c ---- */

/* How long entries of this process are held for those of the spool, and for one that was not answered, after its due. */
#define ROWS_FIRST_FOR (30 * EVREC_SECOND)

/* ---- deferred.c ---- */

/* Room for one deferred entry more. False: no memory. */
bool deferred_reserve(struct outbox *ob);
/* The new entry is deferred: to be followed by deferred_follow or deferred_wait. Its count is the caller's affair. */
void deferred_add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* It follows an entry in flight. */
void deferred_follow(struct outbox *ob, struct entry *entry);
/* It is new, or what it followed was answered: waits for its time. */
void deferred_wait(struct outbox *ob, struct entry *entry);
/* One occurrence more was folded into it. */
void deferred_fold(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* It becomes pending: its age counts from `now`, or from its last occurrence if that was later. */
void deferred_end(struct outbox *ob, struct entry *entry, int64_t now);
/* All of them do: their age counts from ob->now. */
void deferred_end_all(struct outbox *ob);
/* The first one in ENTRY_DEFERRED, which is due; it is pending now, and on no list. */
struct entry *deferred_take(struct outbox *ob, int64_t now);
/* When that is due; INT64_MAX: there is none. */
int64_t deferred_due(const struct outbox *ob);
/* When the driver has to look, at the latest: for what is deferred, or for a row. */
int64_t deferred_look(const struct outbox *ob);

/* ---- settle.c ---- */

/* The item takes this name, and the entry's base if it has one. */
void outbox_name_item(struct outbox *ob, struct entry *entry, const char *name);
/*
 * The name that the server gave `from`, which was answered, and its base, become those of `entry`, if there are any. If
 * `entry` is deferred and `from` was a create that was dropped, and never received, `entry` is the create now.
 */
void outbox_inherit(struct outbox *ob, struct entry *entry, const struct entry *from);
/* Into the id table, in the place of `last`, an earlier row of the event, which is answered; or NULL. */
void outbox_enter_table(struct outbox *ob, struct entry *entry, struct entry *last);
/* Counts `occurrences` of a pending entry as written. */
void outbox_count_written(struct outbox *ob, struct entry *entry, uint32_t occurrences);
/* Counts a pending entry as dropped. */
void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* An entry that was counted and is on no list can now be collected, and its follow-up waits to be sent. */
void outbox_settle(struct outbox *ob, struct entry *entry);
/* Both of these, for an entry on no list. */
void outbox_drop(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* Merges the follow-up into the entry, which will be sent again. Without memory the follow-up stays. */
void outbox_absorb_follow_up(struct outbox *ob, struct entry *entry);
/* An entry on no list is due again after `delay` ns. */
void outbox_back_off(struct outbox *ob, struct entry *entry, enum backoff_why why, int64_t delay, int64_t now);
/* An entry on no list is not tried again by this process: kept for the spool if there is one, else dropped. */
void outbox_keep_for_spool(struct outbox *ob, struct entry *entry);
/* Nothing is to be sent, now or later. */
static inline bool outbox_idle(const struct outbox *ob)
{
	return ob->stats.writes == ob->kept_len && !ob->more;
}

/* ---- row_queue.c: nothing happens without a spool ---- */

/* The entry, on no queue, was made at `now`: it is to have a row if it is pending for too long. */
void rows_add(struct outbox *ob, struct entry *entry, int64_t now);
void rows_queue_change(struct outbox *ob, struct entry *entry, int64_t now); /* of an entry with a row */
/* The entry, or its follow-up, has changed: its row, if it has one, is to be brought up to date. */
static inline void rows_change(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (entry->row != 0) {
		rows_queue_change(ob, entry, now);
	}
}
/* Off its queue. */
void rows_remove(struct outbox *ob, struct entry *entry);
void rows_append(struct outbox *ob, struct entry *entry, enum row_queue queue);
void rows_prepend(struct outbox *ob, struct entry *entry, enum row_queue queue);
/* When the first row is to be written; INT64_MAX: never. */
int64_t rows_first_due(const struct outbox *ob);
/* Room in rows_answered for one row more, as an answer cannot fail for want of memory. False: no memory. */
bool rows_reserve(struct outbox *ob);

/* ---- journal.c: with a journal ---- */

/* Notes the entry, or the one that it follows, as it is by now. `whole`: its items may be others than before. */
void journal_note(struct outbox *ob, struct entry *entry, bool whole);
void journal_forget(struct outbox *ob, struct entry *entry);
/* The entry, or its follow-up, has changed. */
static inline void journal_change(struct outbox *ob, struct entry *entry)
{
	if (ob->journal != NULL) {
		journal_note(ob, entry, false);
	}
}

/* ---- limits.c ---- */

bool outbox_too_old(const struct outbox *ob, const struct entry *entry, int64_t now);
/* False: outbox_make_room would find none either. */
bool outbox_has_room(const struct outbox *ob, bool important);
/*
 * Makes room for a write of `bytes`, dropping others as `full` says; above the limits, only as many as it takes itself,
 * and with EVREC_DROP_OLDEST one more. False: there is none, and none was dropped.
 */
bool outbox_make_room(struct outbox *ob, size_t bytes, bool important);
/* Gives the lock to others after every so many calls with the same counter. */
void outbox_yield_lock(struct outbox *ob, unsigned *n);

#pragma GCC visibility pop

#endif
