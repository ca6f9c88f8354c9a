/*
 * outbox.h - the writes that wait, are under way, or were just answered; a state machine without I/O.
 *
 *   the lane:    outbox_submit ... outbox_submit ... outbox_collect -> entries -> outbox_recycle
 *   a driver:    while ((e = outbox_take(ob, now))) { send e->item; outbox_answer(ob, e, &answer, now); }
 *
 * A write is known by an id. Of one id at most one request is under way, so the writes of one event stay in order;
 * entries of different ids never wait for each other.
 *
 *             submit                take                    answer
 *   (none) ----------> WAITING ------------> IN_FLIGHT ----------------> ANSWERED --collect--> (none)
 *     fold into it: submit  ^ due                 |  \ make or fold into its follow-up: submit
 *                        BACKOFF <----------------'
 *
 * What is in flight is never changed: occurrences that come meanwhile fold into a follow-up, an entry of its own. It
 * is merged back where the request has to be made again, and waits, as a PATCH, once it was answered.
 *
 * A PATCH that was not answered may be carried out after a later one that was: a server that hung has it in one of its
 * sockets. So where one in doubt is followed by success, it is told once more, some time after that, and counts as
 * pending until then.
 *
 * Names. A POST may end under another name than it was given: renamed after a conflict, or chosen by the server. The
 * lane learns of it by collect; what it submits before that is given the new name here.
 *
 * The outbox does not know what it carries: items are made, folded and freed by the lane's functions below, which are
 * called with the lock held and must not call back. It counts occurrences itself: each submit is one.
 *
 * Threads: everything here but outbox_has_news locks; any thread. An entry belongs to the driver from take to answer,
 * which reads id, verb and item, and to the lane from collect to recycle, which reads all but the links.
 */
#ifndef EVREC_OUTBOX_H
#define EVREC_OUTBOX_H

#include "deliver/retry.h"

#pragma GCC visibility push(hidden)

struct outbox;

#define OUTBOX_NAME_SIZE sizeof(((evrec_answer *)0)->name)

struct outbox_ops {
	void *(*make)(const void *draft); /* a new item from what is being submitted; NULL: no memory */
	bool (*fold)(void *item,
	             const void *draft); /* one more occurrence; keeps the name; false: no memory, no change */
	bool (*merge)(void *item, const void *next);             /* `next` happened after `item`; likewise */
	bool (*rename)(void *item, char name[OUTBOX_NAME_SIZE]); /* a fresh name, told; false: no memory */
	size_t (*size)(const void *item);                        /* the memory that it takes now */
	evrec_str (*place)(const void *item); /* where it is written to, borrowed from the item: its namespace */
	void (*set_name)(void *item,
	                 const char *name); /* the name the server knows it by; no memory: the old one stays */
	void (*free)(void *item);
};

/* One occurrence of a write. */
struct occurrence {
	uint64_t id;
	enum verb verb; /* of no interest where a write of that id waits */
	bool important; /* a full outbox drops others first */
	int64_t now;    /* monotonic */
	const void *draft;
};

/* Why an entry backs off: after an answer; for want of any; until a probe of its place was answered, which is no try. */
enum backoff_why { BACKOFF_ANSWERED, BACKOFF_UNANSWERED, BACKOFF_HELD, BACKOFF_WHYS };

enum entry_state { ENTRY_WAITING, ENTRY_FOLLOWING, ENTRY_BACKOFF, ENTRY_IN_FLIGHT, ENTRY_LEFT, ENTRY_ANSWERED };

struct entry {
	struct entry *hash_next;     /* chain of the id table, which holds an id's latest entry, but no follow-up */
	struct entry *prev, *next;   /* the list of its state; not while it backs off or follows */
	struct entry *older, *newer; /* while pending: by last occurrence, among those of its importance */
	struct entry *follow_up;     /* what came while it was under way; or NULL */
	uint64_t id;
	enum entry_state state;
	enum verb verb;
	void *item;       /* what is sent; NULL once all was written, still there where some was dropped */
	uint32_t count;   /* occurrences in it */
	uint32_t arrived; /* how many of them a try carried that may have arrived; 0: no such try */
	uint32_t told;    /* how many of them the server has acknowledged, to be told once more; 0: none */
	bool lingers;     /* a try of this PATCH may be carried out later still, and set the count back */
	unsigned failed;  /* tries that have to be repeated, since it was made */
	struct retry_state retry;
	bool important;
	bool given_up;        /* IN_FLIGHT: already counted as dropped, whatever the answer */
	int64_t row;          /* where a spool has it; 0: nowhere */
	enum backoff_why why; /* BACKOFF */
	uint64_t epoch;       /* BACKOFF: see backoff.h */
	int64_t due;          /* BACKOFF: when to try again, where that epoch has not ended */
	size_t heap_at;       /* BACKOFF: its index in the heap */
	int64_t last;         /* the last occurrence */
	size_t bytes;         /* what it takes, as counted */
	bool dropped;         /* ANSWERED, for `cause` */
	enum evrec_cause cause;
	char name[OUTBOX_NAME_SIZE]; /* what the server or a renaming called it; empty where the item's name holds */
	char resource_version[sizeof(((evrec_answer *)0)->resource_version)];
};

struct outbox_stats {
	/* Occurrences: submitted = created + patched + coalesced + pending + spooled + the sum of dropped. */
	uint64_t submitted, created, patched, coalesced, pending, spooled;
	uint64_t restored; /* of those submitted: from a spool, where an earlier process had left them */
	uint64_t dropped[EVREC_CAUSES];
	uint64_t retries;   /* requests sent again */
	uint64_t writes;    /* entries waiting, backing off or in flight, and follow-ups */
	uint64_t bytes;     /* the memory that they take */
	uint64_t in_flight; /* taken, not answered */
	uint64_t reports_lost;
};

/* The options of every sink: 0, or EVREC_EINVALID, which names the one that is wrong. */
int outbox_check_limits(const evrec_limits *limits, evrec_error *err);
/*
 * `limits` were checked, and are copied; `seed` starts the jitter. What was answered or dropped waits for collect
 * beyond those bounds: a lane collects more than it submits. NULL where there is no memory.
 */
struct outbox *outbox_new(const struct outbox_ops *ops, const evrec_limits *limits, uint64_t seed);
void outbox_free(struct outbox *ob); /* frees all items, in whatever state; no driver may be at work */

/*
 * Whom to tell that there is something to take, called without the lock, by the submitting thread, and only when the
 * outbox had nothing waiting before. Set once, before the first submit.
 */
void outbox_on_work(struct outbox *ob, void (*wake)(void *ctx), void *ctx);

/*
 * Folds an occurrence where a write of its id waits, else makes an entry, for which others may have to go (evrec_limits:
 * full): those are there to be collected. Where there is no room or no memory it is counted as dropped under *cause,
 * and the result is false.
 */
bool outbox_submit(struct outbox *ob, const struct occurrence *occurrence, enum evrec_cause *cause);

/*
 * The next entry to send, now in flight: what is due again at `now` (monotonic), else what waits longest, or NULL.
 * What is too old, or goes to a place that is known to refuse it (places.h), is dropped instead, to be collected.
 */
struct entry *outbox_take(struct outbox *ob, int64_t now);
/* Drops what has waited too long, and says when there will be more: INT64_MAX if never. Any driver, every round. */
int64_t outbox_expire(struct outbox *ob, int64_t now);
/* When outbox_take will next have something: a time <= now if at once, INT64_MAX if never. */
int64_t outbox_next_due(struct outbox *ob, int64_t now);

/*
 * The answer to what was taken; the entry is no longer the driver's. Decides by retry_decide, counts, reports what went
 * wrong. True where the credentials should be read again before the next request.
 */
bool outbox_answer(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now);
/* The server answers again: what backs off because nothing answered is due at once. */
void outbox_hasten(struct outbox *ob);

/*
 * False: there was nothing to collect or to report a moment ago. Takes no lock: for the way of every event, which can
 * learn of an answer one event later.
 */
bool outbox_has_news(const struct outbox *ob);
/* The oldest answered entry, now the lane's; or NULL. Where it was dropped its item is there, to be shown. */
struct entry *outbox_collect(struct outbox *ob);
void outbox_recycle(struct outbox *ob, struct entry *entry); /* done with it: frees it, and the item */

/*
 * Something went wrong that people should hear of, and is queued for outbox_next_report; one that is like the last but
 * for its numbers is not, unless there was quiet for 10 minutes. `name` is static: "transport", "throttled", "server",
 * "unauthorized", "rejected", "forbidden" (once for each message), "not_found", "conflict", "memory", "thread".
 */
void outbox_report(struct outbox *ob, const char *name, const char *message);
struct outbox_report {
	const char *name; /* static */
	char message[320];
};
bool outbox_next_report(struct outbox *ob, struct outbox_report *report);

/* From now on nothing is accepted, and nothing is tried twice; what waits or backs off can still be taken, at once. */
void outbox_close(struct outbox *ob);
/*
 * Drops all that is pending, cause as given. What waits or backs off is there to be collected; what is in flight is
 * counted as dropped now, and is collected after its answer, of whatever kind, or outbox_cut_off.
 */
void outbox_drop_all(struct outbox *ob, enum evrec_cause cause);
/* The driver is gone and will answer nothing: what it had taken is dropped, cause "closed". */
void outbox_cut_off(struct outbox *ob);

/*
 * Waits until `deadline` (CLOCK_MONOTONIC); true, and at once, if no write is pending, or is still to be expected of a
 * spool. What is left for the spool at the end is not pending any more in this sense. What can be collected meanwhile
 * does not end the wait: a driver that answers thousands a second is not held up by waking who waits for each.
 */
bool outbox_wait(struct outbox *ob, int64_t deadline);
bool outbox_empty(struct outbox *ob);
/* True if all that is pending backs off until after `now`. */
bool outbox_stalled(struct outbox *ob, int64_t now);
void outbox_get_stats(struct outbox *ob, struct outbox_stats *stats);

/* ---- with a spool: for the spooler alone (spooler.h has the order of the calls) ---- */

/* More is to come from the spool: outbox_empty is false until that is taken back. At the end it keeps what is left. */
void outbox_expect(struct outbox *ob, bool more);

/* How many rows may be restored now, wait to be answered, were answered, and how many entries are left for the spool. */
struct outbox_rows {
	size_t room, room_bytes; /* where half of each bound is taken, both are 0: the rest is for what is new */
	size_t waiting, answered, left;
};
void outbox_get_rows(struct outbox *ob, struct outbox_rows *rows);

/* What a row had, as an entry of an id that the lane never uses. Owns the item, and frees it where it is not wanted. */
struct outbox_saved {
	int64_t row;
	enum verb verb;
	uint32_t count, arrived; /* as in an entry */
	bool important;
	int64_t last; /* monotonic, likewise; before there was this clock, perhaps */
	void *item;
};
void outbox_restore(struct outbox *ob, const struct outbox_saved *saved, bool wanted);
/* What an entry of this item takes, of how much at most. */
size_t outbox_item_bytes(const struct outbox *ob, const void *item);
size_t outbox_max_bytes(const struct outbox *ob);
void outbox_discard(const struct outbox *ob, void *item); /* one that is not restored */
/* Rows that were answered, each told once; returns how many. */
size_t outbox_take_answered_rows(struct outbox *ob, int64_t *rows, size_t max);

/* There is no driver any more: all that is pending is left for the spool. Without one it is dropped, cause "closed". */
void outbox_leave_all(struct outbox *ob);
/* After that: the entry behind `entry`, the first for NULL; NULL: no more. */
const struct entry *outbox_next_left(const struct outbox *ob, const struct entry *entry);
void outbox_spooled(struct outbox *ob); /* all that is left is in the file: counted so, and freed */

#pragma GCC visibility pop

#endif
