/*
 * outbox.h - the writes that wait, are under way, or were just answered: a state machine without I/O.
 *
 *   pipeline:  outbox_submit ... outbox_submit ... outbox_collect -> entries -> outbox_recycle
 *   sender:    while ((e = outbox_take(ob, now))) { send e->item; outbox_answer(ob, e, &outcome, now); }
 *
 * A write is known by an id. At most one request of an id is under way, so the writes of one event stay in order;
 * entries of different ids never wait for each other. entry.h has the states of an entry.
 *
 * An item in flight never changes. Occurrences that come meanwhile fold into a follow-up, an entry of its own. The
 * follow-up is merged back if the request has to be repeated, and waits as a patch once the request was answered.
 *
 * A server that hung may carry out a patch that it never answered after a later one that it did answer. So if a patch
 * in doubt is followed by success, the same patch is sent once more after a while, and counts as pending until then.
 *
 * A created object may have another name than the create was sent with: renamed after a conflict, or named by the
 * server. The pipeline learns the name by outbox_collect; the outbox itself gives the new name to writes that are
 * submitted before that.
 *
 * The outbox does not know the content of items: outbox_ops make, fold and free them. They are called with the lock
 * held and must not call back. The outbox counts occurrences by itself: each outbox_submit is one, unless it is silent.
 *
 * An occurrence may have a receipt. It comes back once: in the entry that outbox_collect returns, once the occurrence was
 * written, dropped, or is in the spool as a whole. A row that is written while the entry is pending settles nothing.
 * The memory of receipts, one for each id in each entry, is not counted in the limits.
 *
 * Threads: all functions lock, and may be called by any thread, but for these. outbox_has_news, outbox_is_restored,
 * outbox_item_bytes, outbox_max_bytes and outbox_discard need no lock. outbox_on_work comes before the first submit.
 * outbox_next_kept walks a list that only the driver of the outbox changes.
 *
 * Between outbox_take and outbox_answer an entry belongs to the sender, which reads id, verb, item, maybe_received,
 * renamed, again and missing; between outbox_collect and outbox_recycle to the pipeline, which reads all but the links.
 */
#ifndef EVREC_OUTBOX_H
#define EVREC_OUTBOX_H

#include "outbox/entry.h"
#include "outbox/journal.h"

#pragma GCC visibility push(hidden)

struct outbox;

/* Gives memory of `size` bytes, aligned for pointers and 64-bit numbers. NULL: there is none. */
typedef void *outbox_room_func(void *ctx, size_t size);

/* If there is no memory, the functions that return bool return false and change nothing. */
struct outbox_ops {
	/* Makes an item of the draft that is submitted, in memory of one call of `room`. NULL: no memory. */
	void *(*make)(const void *draft, outbox_room_func *room, void *ctx);
	void (*fini)(void *item);                    /* ends an item of `make`, but does not free its block */
	void *(*copy)(const void *item);             /* a copy of the item, on the heap; NULL: no memory */
	bool (*fold)(void *item, const void *draft); /* adds an occurrence; the item keeps its name */
	bool (*merge)(void *item, const void *next); /* adds `next`, which happened after `item` */
	bool (*rename)(void *item, char name[OUTBOX_NAME_SIZE]); /* gives it a fresh name, and returns that in `name` */
	size_t (*size)(const void *item);               /* bytes of memory that it takes now, with those of `room` */
	evrec_str (*ns)(const void *item);              /* the namespace it is written to, borrowed */
	void (*set_name)(void *item, const char *name); /* without memory the old name stays */
	/* For VERDICT_ADOPT, and for occurrences submitted before its entry is collected. NULL: no protocol adopts. */
	void (*set_base)(void *item, uint32_t base);
	void (*on_time)(void *item); /* the deferred item became due, or outbox_release was called; NULL: not needed */
	void (*free)(void *item);    /* an item on the heap: of `copy`, outbox_restore or outbox_bring */
};

/* One occurrence of a write. */
struct occurrence {
	uint64_t id;
	enum verb verb; /* ignored if a write of that id waits */
	bool is_first;  /* no occurrence of this id was submitted before; a build with -DEVREC_DEBUG traps if one was */
	bool important; /* a full outbox drops others first */
	int64_t now;    /* monotonic ns */
	/*
	 * When the write is due, monotonic ns; 0: at once. Deferred occurrences count as `counted`, not as pending.
	 *   0, and the write of this id is deferred: that becomes pending
	 *   0, else: the write is pending
	 *   a time, and a write of this id is pending: the occurrence folds into it, and is pending too
	 *   a time, and the write of this id is deferred: that is due at the new time, or becomes pending if it was due
	 *     by now, so that it is not put off
	 *   a time, and there is no such write, or one in flight without a follow-up: a write is deferred until then, if
	 *     there is room by `max_deferred`
	 */
	int64_t due;
	/* If so many writes are deferred, a new one with a time is pending at once, within the limits; 0: no bound. */
	size_t max_deferred;
	bool *deferred; /* an output, set if `due` is: whether the write is deferred; NULL: not needed */
	bool again;     /* an earlier process or an earlier write may have created the object under this name */
	bool silent;    /* a write without an occurrence: the counters count none */
	const struct receipt_id *receipt; /* NULL: none; not of a silent one */
	const void *draft;
};

struct outbox_stats {
	/* Occurrences: submitted = created + patched + coalesced + counted + pending + spooled + the sum of dropped. */
	uint64_t submitted, created, patched, coalesced, counted, pending, spooled;
	uint64_t restored; /* of those submitted: left in a spool by an earlier process */
	uint64_t dropped[EVREC_CAUSES];
	uint64_t retries;   /* writes sent again */
	uint64_t writes;    /* entries waiting, backing off or in flight, and follow-ups */
	uint64_t bytes;     /* the memory that they take */
	uint64_t in_flight; /* entries taken and not answered */
	uint64_t messages_lost;
};

/* Checks the limits of a sink: 0, or EVREC_EINVALID and a message that names the option. */
int outbox_check_limits(const evrec_limits *limits, evrec_error *err);
/* max_pending_bytes, or its default. */
size_t outbox_limit_of_bytes(const evrec_limits *limits);
/*
 * `limits` were checked, and are copied; `seed` starts the jitter. NULL: no memory. Entries that were answered or
 * dropped, and wait to be collected, are not counted in these limits; they stay few, as a pipeline collects faster than
 * it submits.
 */
struct outbox *outbox_new(const struct outbox_ops *ops, const evrec_limits *limits, uint64_t seed);
void outbox_free(struct outbox *ob); /* frees all items; no sender may be at work */

/*
 * Sets the function by which the submitting thread wakes the driver, without the lock, if the driver has new work, or
 * earlier than it knows. Call it once, before the first submit.
 */
void outbox_on_work(struct outbox *ob, void (*wake)(void *ctx), void *ctx);

/*
 * From now on writes are gathered for batches: the waiting writes are due once `batch` of them wait, or half of a limit
 * is taken, or the first of them has waited for `delay` ns, or half of max_age, since its first occurrence or its due.
 * A write that is sent again, or was restored, does not wait for a batch, and the waiting writes are sent with it.
 * Before the first submit. Without this call, or with a delay of 0, each write is due at once.
 */
void outbox_gather(struct outbox *ob, size_t batch, int64_t delay);
/*
 * From now on a write in doubt is not sent once more after its success: the receiver appends each write, so a late one
 * sets no count back. Before the first submit.
 */
void outbox_append_only(struct outbox *ob);

/*
 * Folds the occurrence into the waiting write of its id, or makes an entry, for which others may be dropped
 * (evrec_limits.full); these can be collected. False: no room or no memory; the occurrence was counted as dropped for
 * *cause, and its receipt will not come back.
 */
bool outbox_submit(struct outbox *ob, const struct occurrence *occurrence, enum evrec_cause *cause);

/*
 * Makes deferred writes pending: all of them, or that of this id. They may exceed the limits, and their age counts from
 * `now` (monotonic). outbox_close releases all of them too: their age then counts from the latest `now` of the driver.
 * outbox_release_all also makes the waiting writes due, and the follow-ups of those in flight, without waiting for a
 * batch.
 */
void outbox_release_all(struct outbox *ob, int64_t now);
void outbox_release(struct outbox *ob, uint64_t id, int64_t now);

/*
 * The next entry to send, now in flight: one that backed off and is due at `now` (monotonic), else the one that waits
 * longest (a deferred one waits from its due on); or NULL. Entries that are too old, or whose namespace refuses them
 * (namespace_blocks.h), are dropped instead. Does not check whether a batch is due: outbox_next_due does.
 */
struct entry *outbox_take(struct outbox *ob, int64_t now);
/*
 * Drops entries that are too old; returns when the next one will be too old: INT64_MAX if never. Called in every round.
 */
int64_t outbox_expire(struct outbox *ob, int64_t now);
/* When outbox_take will next return an entry: a time <= now: at once; INT64_MAX: never. */
int64_t outbox_next_due(struct outbox *ob, int64_t now);

/*
 * The entry was not sent: it waits again, before all others, with the occurrences submitted for it meanwhile. Not
 * counted as a try.
 */
void outbox_untake(struct outbox *ob, struct entry *entry);
/* Acts on the outcome of a try, counts it, and queues its message. The entry is no longer the sender's. */
void outbox_answer(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now);
/* The server answers again: entries that back off for want of an answer are due now. */
void outbox_make_due_now(struct outbox *ob);

/* False: a moment ago there was no entry to collect and no message. Takes no lock, as every recording call asks. */
bool outbox_has_news(const struct outbox *ob);
/*
 * The oldest answered entries, `max` at most, linked by `next`, now the pipeline's; or NULL. A dropped entry still has
 * its item. Of a `spooled` entry only the receipts are valid.
 */
struct entry *outbox_collect(struct outbox *ob, size_t max);
void outbox_recycle(struct outbox *ob, struct entry *entries); /* frees them, linked by `next`, and their items */
/*
 * From now on an entry that was written, and has neither receipts nor an identity, is freed without being collected.
 * Before the first submit.
 */
void outbox_skip_plain_answers(struct outbox *ob);

/*
 * Queues a message for outbox_next_message. A message that differs from the last one only in its numbers is not queued,
 * unless the last one is 10 minutes old. `name`, static, is the kind of error that on_error gets.
 */
void outbox_report(struct outbox *ob, const char *name, const char *message);
struct outbox_message {
	const char *name; /* static */
	char message[320];
};
bool outbox_next_message(struct outbox *ob, struct outbox_message *report);

/*
 * Passes items that a protocol has found to the pipeline. outbox_bring owns the item, also if there is no memory; the
 * pipeline gives the items that it takes to outbox_discard. NULL: there is no more.
 */
void outbox_bring(struct outbox *ob, void *item);
void *outbox_next_brought(struct outbox *ob);

/*
 * The dropped occurrences whose entries were not collected, by cause, and the message that was queued last, taken or
 * not; its name is NULL if there was none.
 */
struct outbox_losses {
	uint64_t dropped[EVREC_CAUSES];
	struct outbox_message message;
};
void outbox_get_losses(struct outbox *ob, struct outbox_losses *losses);

/* From now on submits are dropped, and no entry is tried twice; those that back off can be taken at once. */
void outbox_close(struct outbox *ob);
/*
 * Drops all pending entries for `cause`. Entries in flight are counted as dropped now, and can be collected after any
 * answer, or after outbox_cut_off.
 */
void outbox_drop_all(struct outbox *ob, enum evrec_cause cause);
/* The sender is gone and will answer nothing: entries in flight are dropped, cause "closed". */
void outbox_cut_off(struct outbox *ob);

/*
 * Waits until the outbox is empty, or `deadline` (CLOCK_MONOTONIC); true: it is empty. Entries to be collected do not
 * end the wait, so that a sender that answers thousands a second need not wake the waiting thread for each.
 */
bool outbox_wait(struct outbox *ob, int64_t deadline);
/* No write is pending or expected from a spool; entries that are kept for the spool do not count. */
bool outbox_empty(struct outbox *ob);
/* True: there is no entry, not even a deferred one, nothing to collect, and no message; and no row is expected. */
bool outbox_at_rest(struct outbox *ob);
/*
 * Allocates memory for entries to come, if `ahead`, so that submitting calls allocate less and have fewer page faults,
 * and frees memory that was not used for a second. Releases the lock for all that takes time. The driver calls it each
 * round, and not `ahead` if the same thread submits. Returns when it is to be called next at the latest, in monotonic
 * ns; INT64_MAX: never.
 */
int64_t outbox_keep_memory_ready(struct outbox *ob, int64_t now, bool ahead);
/* True if all pending entries back off until after `now`. */
bool outbox_stalled(struct outbox *ob, int64_t now);
void outbox_get_stats(struct outbox *ob, struct outbox_stats *stats);

/* Whether entries of this process wait until no row is left: outbox_send_rows_first was called, and its time is not up. */
bool outbox_sends_rows_first(struct outbox *ob);
/* True: a spool has, or may have, writes of earlier processes that were not answered yet. */
bool outbox_awaits_rows(struct outbox *ob);
/*
 * Before the first submit: a row of an earlier process and an entry of this one may be of one event, as the
 * correlator's state was kept. So entries of this process wait until the rows were answered, for 30 s at most, without
 * the time of an outage. If the outbox is closed meanwhile, and a row is kept for the spool or was not read, they are
 * kept as well.
 */
void outbox_send_rows_first(struct outbox *ob);
/* True: the entry, in flight, was restored from a row of an earlier process. */
bool outbox_is_restored(const struct entry *entry);

/* ---- with a spool: for the spooler alone (spooler.h has the order of the calls) ---- */

/*
 * Whether rows are expected of the spool: if so, outbox_empty is false. After the first call with true, entries that
 * are pending at the end are kept for the spool.
 */
void outbox_expect(struct outbox *ob, bool more);

/* Numbers of rows, except room_bytes. */
struct outbox_rows {
	/*
	 * The rows, and their bytes, that may be restored now. 0 if half of a bound is taken: the other half is for new
	 * events, unless rows go first.
	 */
	size_t room, room_bytes;
	size_t waiting;      /* restored and not answered yet */
	size_t own;          /* entries with a row in the own file */
	size_t answered;     /* for outbox_get_answered_rows */
	int64_t answered_at; /* when the first of these was: monotonic */
	size_t kept;         /* entries for outbox_next_kept */
	bool closed;         /* nothing is restored any more */
};
void outbox_get_rows(struct outbox *ob, struct outbox_rows *rows);
/* The outbox is closed, and the spool has rows that were not read: the next process sends them. */
void outbox_leave_rows(struct outbox *ob);

/*
 * From now on an entry that is pending for `after` ns needs a row in the file of this process, from which the next
 * process sends it if this one dies. Before the first submit.
 */
void outbox_write_rows_after(struct outbox *ob, int64_t after);
/*
 * When the next row is to be written, or entries must be checked for changes: monotonic; INT64_MAX: not before the next
 * entry is submitted to an empty outbox.
 */
int64_t outbox_rows_due(struct outbox *ob, int64_t now);
enum outbox_row_found { OUTBOX_NO_ROW, OUTBOX_ROW, OUTBOX_NO_MEMORY };
/*
 * The next row that is due at `now`, important ones first. A new row gets the number `number` of the own file. The
 * entry then waits for outbox_rows_written. The row is a copy, so that the lock is released before it is written.
 */
enum outbox_row_found outbox_next_row(struct outbox *ob, int64_t now, int64_t number, struct outbox_row *row);
/* All rows of outbox_next_row are in their files; if not `ok`, no row is, and all are due again. */
void outbox_rows_written(struct outbox *ob, bool ok);

/* The own file, or the one that rows were restored from, is lost: each row in it is due again, with the number that it had. */
void outbox_rows_lost(struct outbox *ob, bool own);

/*
 * Notes all pending writes in this journal, from now on; NULL: in none. If the outbox has this journal already: starts
 * to use its new memory, and notes the writes for which there was no room. The outbox borrows it.
 */
void outbox_set_journal(struct outbox *ob, struct outbox_journal *journal);
bool outbox_has_writes(struct outbox *ob); /* pending or deferred ones */

/* A row of the spool, parsed. */
struct outbox_saved {
	int64_t row;
	enum verb verb;
	uint32_t count, maybe_received; /* as in an entry */
	bool important;
	int64_t last;   /* monotonic, likewise; may be before this clock began */
	uint64_t event; /* a number that rows of one event share; 0: no other row is of its event */
	void *item;
};
/*
 * Makes an entry of a row, with an id that the pipeline never uses. Owns the item from now on. False: the outbox is
 * closed, has no memory, or was given other entries since outbox_get_rows; the item is freed, and the row may be
 * restored later. The entry is taken once all earlier rows of its event are answered, as the server may carry out two
 * requests in either order.
 */
bool outbox_restore(struct outbox *ob, const struct outbox_saved *saved);
/* The bytes that an entry of this item takes, and the bytes that all entries may take. */
size_t outbox_item_bytes(const struct outbox *ob, const void *item);
size_t outbox_max_bytes(const struct outbox *ob);
void outbox_discard(const struct outbox *ob, void *item); /* frees an item that is not restored */
/*
 * Sets `rows` to the numbers of answered rows, from the `from`-th on, with the sign as in outbox_row; returns how many.
 */
size_t outbox_get_answered_rows(struct outbox *ob, size_t from, int64_t *rows, size_t max);
/* The first `n` of them are deleted. */
void outbox_rows_forgotten(struct outbox *ob, size_t n);

/*
 * After the driver has ended: keeps all pending entries for the spool, the important ones first, each kind by age.
 * Without a spool they are dropped, cause "closed".
 */
void outbox_keep_all_for_spool(struct outbox *ob);
/* After that: counts the kept entries whose rows are up to date as spooled, as outbox_spooled does. */
void outbox_spool_rows(struct outbox *ob);
/* After that: the kept entry after `entry`, the first one if that is NULL; NULL: no more. */
const struct entry *outbox_next_kept(const struct outbox *ob, const struct entry *entry);
/* Moves the first kept entry behind all others. */
void outbox_defer_kept(struct outbox *ob);
/*
 * The kept entries up to and with `last`, or all for NULL, are in the file: counts them as spooled, and frees them, but for
 * those with receipts, which can be collected.
 */
void outbox_spooled(struct outbox *ob, const struct entry *last);

#pragma GCC visibility pop

#endif
