/*
 * outbox_inner.h - the structs and internal functions of an outbox. Its files call each other in this order:
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
	struct entry *restored; /* from a spool, the last one or an older one: the next one's place is near it */
};

struct row_list {
	struct entry *head, *tail;
};

/* The waiting entries, which are sent in batches. All zero: each is due at once. */
struct gather {
	size_t len;       /* waiting entries */
	size_t batch;     /* if so many wait, they are due */
	int64_t delay;    /* ns that the first may wait, until they are due */
	bool ended;       /* the entries that wait now are due; false if none waits */
	bool told;        /* they are due, and the driver was woken for it */
	int64_t ended_at; /* the last waiting_end, monotonic; INT64_MIN: there was none */
};

/* The request whose writes back off together: the latest outcome with a request named it. */
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
	int64_t now;      /* the latest `now` of a driver */
	struct pool pool; /* of entries, each with its item behind it, and of identities */
	int64_t trimmed;  /* when slabs of the pool were given back last: monotonic */
	bool skips_plain_answers;
	struct receipt *spare; /* for the next receipt; or NULL */
	struct id_table table;
	struct entry_list waiting; /* in order of taking; only waiting.c changes it */
	struct gather gather;
	bool append_only; /* a late write sets no count back */
	struct together together;
	struct entry_list in_flight;
	struct entry_list answered; /* oldest first */
	struct backoff backoff;
	struct heap deferred;                 /* entries in ENTRY_DEFERRED */
	struct entry_list deferred_following; /* follow-ups that are deferred */
	size_t deferred_len;                  /* of both kinds */
	struct ages ages[2];                  /* all pending entries; [true]: the important ones */
	struct namespace_blocks blocks;
	struct outbox_stats stats;
	uint64_t uncollected[EVREC_CAUSES]; /* dropped occurrences of entries that were not collected */
	struct messages messages;
	struct brought *brought, **brought_end; /* the items of outbox_bring, in order */
	/* With a spool: */
	bool keeps;           /* at the end entries are kept for the spool, not dropped */
	bool more;            /* rows are expected of the spool */
	bool rows_were_first; /* outbox_send_rows_first was called: an entry of this process may be of a row's event */
	bool rows_first;      /* entries of this process are held until no row is left, */
	int64_t rows_until;   /* or until then; INT64_MIN: nothing was taken yet */
	struct entry_list held; /* the entries that rows_first holds back */
	bool rows_stay;         /* a row was kept at the end, or is not read any more: the next process sends it */
	struct entry_list kept; /* for the spool: pending, but not to be sent in this process */
	size_t kept_len;
	int64_t rows_after;                     /* ns after which a pending entry is to have a row; INT64_MAX: never */
	struct row_list row_queues[ROW_QUEUES]; /* [ROW_QUEUE_NONE] is empty */
	size_t rows_waiting;                    /* entries that were restored from a row */
	size_t rows_own;                        /* entries with a row in the own file */
	struct answered_row *rows_answered;     /* to be deleted; has room for restored and own rows */
	int64_t rows_answered_at;               /* the time of the first one */
	size_t rows_answered_len, rows_cap;
	struct outbox_journal *journal; /* or NULL */
	atomic_bool news; /* an entry or a message can be taken: written with the lock held, read without it */
	void (*wake)(void *ctx);
	void *wake_ctx;
};

/* The bytes of an entry without its item, and of its slots in the id table and in the heaps of backoff. */
#define ENTRY_BYTES (sizeof(struct entry) + sizeof(struct id_slot) + (1 + BACKOFF_WHYS) * sizeof(struct entry *))

/* ---- memory.c ---- */

/* A zeroed entry with an item of the draft. NULL: no memory. */
struct entry *entry_make(struct outbox *ob, const void *draft);
/* A zeroed entry that owns this item, a heap block, or no item if it is NULL. Returns NULL: no memory. */
struct entry *entry_make_for(struct outbox *ob, void *item);
/* Frees the entry's item, and sets it to NULL. */
void entry_free_item(struct outbox *ob, struct entry *entry);
void entry_free(struct outbox *ob, struct entry *entry);
/* Room for two strings of so many bytes together, with their NULs. NULL: no memory. */
struct identity *identity_new(struct outbox *ob, size_t text_size);
/* The entry owns `identity` from now on. */
void entry_set_identity(struct outbox *ob, struct entry *entry, struct identity *identity, const char *name,
                        const char *resource_version);
/* Makes an identity of both strings, and sets it. False: no memory, and the entry's identity stays. */
bool entry_identify(struct outbox *ob, struct entry *entry, const char *name, const char *resource_version);

/* ---- outbox.c ---- */

void outbox_queue_message(struct outbox *ob, const char *name, const char *message);

/* Releases the lock, and wakes the driver if `wake`. */
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
/* Likewise, for an entry from a spool: it is older than most, so the search for its place begins at ages->restored. */
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
 * The entry, on no list, waits after all others, since `since`, for a batch to fill. INT64_MIN: it is due now, and so
 * are all waiting entries.
 */
void waiting_append(struct outbox *ob, struct entry *entry, int64_t since);
/* The entry, on no list, waits before all others, and is due now. */
void waiting_prepend(struct outbox *ob, struct entry *entry);
/*
 * A follow-up whose entry was answered waits after all others; it is due now if it was made before the last
 * waiting_end.
 */
void waiting_append_follow_up(struct outbox *ob, struct entry *entry);
void waiting_remove(struct outbox *ob, struct entry *entry);
struct entry *waiting_shift(struct outbox *ob); /* removes and returns the first; NULL: none waits */
/* The entries that wait now, and the follow-ups of entries in flight, do not wait for a batch. */
void waiting_end(struct outbox *ob, int64_t now);
/*
 * When the waiting entries, or the first deferred one, which is due at `first`, can be taken: <= now: at once;
 * INT64_MAX: never.
 */
int64_t waiting_due(const struct outbox *ob, int64_t first, int64_t now);
/*
 * Whether the driver must be woken after an entry may have been added to `waited` waiting ones: there was none, or all
 * have become due.
 */
bool waiting_needs_driver(struct outbox *ob, size_t waited);
/* Whether the driver must allocate memory ahead. */
static inline bool outbox_wants_memory(const struct outbox *ob)
{
	return ob->pool.wanted != 0 || ob->table.wants_tier;
}

/* ---- take.c ---- */

/* How long entries of this process are held for the rows of the spool, and after the due of an unanswered row. */
#define ROWS_FIRST_FOR (30 * EVREC_SECOND)

/* ---- deferred.c ---- */

/* Room for one deferred entry more. False: no memory. */
bool deferred_reserve(struct outbox *ob);
/* Defers the new entry; the caller sets its count, and then calls deferred_follow or deferred_wait. */
void deferred_add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* The deferred entry follows an entry in flight. */
void deferred_follow(struct outbox *ob, struct entry *entry);
/* The deferred entry is new, or the entry that it followed was answered: it waits for its time. */
void deferred_wait(struct outbox *ob, struct entry *entry);
/* One more occurrence was folded into the deferred entry. */
void deferred_fold(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* The deferred entry becomes pending: its age counts from `now`, or from its last occurrence if that is later. */
void deferred_end(struct outbox *ob, struct entry *entry, int64_t now);
/* All deferred entries become pending: their age counts from ob->now. */
void deferred_end_all(struct outbox *ob);
/* Removes the first entry in ENTRY_DEFERRED, which is due: it becomes pending, and is on no list. */
struct entry *deferred_take(struct outbox *ob, int64_t now);
/* When the first deferred entry is due; INT64_MAX: there is none. */
int64_t deferred_due(const struct outbox *ob);
/* When the driver has to run at the latest, for a deferred entry or a row. */
int64_t deferred_look(const struct outbox *ob);

/* ---- settle.c ---- */

/* The item takes this name, and the entry's base if it has one. */
void outbox_name_item(struct outbox *ob, struct entry *entry, const char *name);
/*
 * Gives `entry` the server's name and the base of `from`, which was answered, if it has them. If `entry` is deferred,
 * and `from` is a create that was dropped and certainly not received, `entry` becomes the create, with its `again`.
 */
void outbox_inherit(struct outbox *ob, struct entry *entry, const struct entry *from);
/* Puts the entry into the id table, in the place of `last` (or NULL), an earlier row of the event that was answered. */
void outbox_enter_table(struct outbox *ob, struct entry *entry, struct entry *last);
/* Counts `occurrences` of a pending entry as written. */
void outbox_count_written(struct outbox *ob, struct entry *entry, uint32_t occurrences);
/* Counts a pending entry as dropped. */
void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* The entry, which was counted and is on no list, can now be collected, and its follow-up waits to be sent. */
void outbox_settle(struct outbox *ob, struct entry *entry);
/* Counts the entry, which is on no list, as dropped, and settles it. */
void outbox_drop(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* The entry's follow-up was dropped. Their row counts it no more; it is deleted if no occurrence is left. */
void outbox_end_follow_up(struct outbox *ob, struct entry *entry);
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
/* Removes the entry from its queue. */
void rows_remove(struct outbox *ob, struct entry *entry);
void rows_append(struct outbox *ob, struct entry *entry, enum row_queue queue);
void rows_prepend(struct outbox *ob, struct entry *entry, enum row_queue queue);
/* When the first row is to be written; INT64_MAX: never. */
int64_t rows_first_due(const struct outbox *ob);
/* Reserves room in rows_answered for one more row, as an answer must not fail for want of memory. False: no memory. */
bool rows_reserve(struct outbox *ob);

/* ---- journal.c: with a journal ---- */

/*
 * Writes a note of the present state of the entry, or of the entry that it follows. `whole`: its items may have been
 * replaced.
 */
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
 * Makes room for a write of `bytes`, dropping others as `full` says. Above the limits it drops only as much as the
 * write takes, and with EVREC_DROP_OLDEST one more. False: there is no room, and nothing was dropped.
 */
bool outbox_make_room(struct outbox *ob, size_t bytes, bool important);
/* Releases the lock for a moment, once in a number of calls with the same counter. */
void outbox_yield_lock(struct outbox *ob, unsigned *n);

#pragma GCC visibility pop

#endif
