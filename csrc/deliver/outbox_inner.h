/*
 * outbox_inner.h - what the files of the outbox share. Everything here is called with the lock held.
 */
#ifndef EVREC_OUTBOX_INNER_H
#define EVREC_OUTBOX_INNER_H

#include "deliver/backoff.h"
#include "deliver/places.h"
#include "deliver/reports.h"
#include "deliver/table.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct entry_list {
	struct entry *head, *tail;
};

/* By last occurrence. */
struct ages {
	struct entry *oldest, *newest;
	struct entry *restored; /* the last one from a spool, or one that was older: the next belongs near it */
};

struct outbox {
	pthread_mutex_t lock;
	pthread_cond_t progress; /* nothing is pending any more */
	struct outbox_ops ops;
	evrec_limits limits;
	uint64_t random;
	bool closed;
	int64_t now; /* the latest time a driver told */
	struct table table;
	struct entry_list waiting; /* in order of taking */
	struct entry_list in_flight;
	struct entry_list answered; /* oldest first */
	struct backoff backoff;
	struct ages ages[2]; /* all that is pending; [true]: what is important */
	struct places places;
	struct outbox_stats stats;
	struct reports reports;
	/* With a spool: */
	bool keeps;             /* what is left at the end */
	bool more;              /* is to come */
	struct entry_list left; /* not to be sent in this process, still pending */
	size_t left_len;
	size_t rows_waiting;    /* entries that a row has too */
	int64_t *rows_answered; /* to be forgotten; has room for those that wait */
	size_t rows_answered_len, rows_cap;
	atomic_bool news; /* something was answered or reported: changed with the lock held, looked at without */
	void (*wake)(void *ctx);
	void *wake_ctx;
};

void list_append(struct entry_list *list, struct entry *entry);
void list_prepend(struct entry_list *list, struct entry *entry);
void list_remove(struct entry_list *list, struct entry *entry);
struct entry *list_shift(struct entry_list *list); /* the first, removed; NULL: there is none */

/* The name of `from`, which was answered, is that of `entry`, whatever the lane believed. */
void outbox_inherit_name(struct outbox *ob, struct entry *entry, const struct entry *from);
void outbox_report_locked(struct outbox *ob, const char *name, const char *message);
/* Puts an entry that was made, or had one more occurrence, where it belongs by age and importance. */
void outbox_rejuvenate(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* `follow_up` is merged into `entry`, which takes its place by age. */
void outbox_take_age(struct outbox *ob, struct entry *entry, struct entry *follow_up);
/* From now on, and no longer, it counts as pending: writes, bytes, age. */
void outbox_track(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
/* Likewise for one from a spool, which is older than most. */
void outbox_track_restored(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence);
void outbox_untrack(struct outbox *ob, struct entry *entry);
/* Its item has changed: counts the bytes anew. */
void outbox_weigh(struct outbox *ob, struct entry *entry);
bool outbox_too_old(const struct outbox *ob, const struct entry *entry, int64_t now);
/* False: outbox_make_room would find none either. */
bool outbox_has_room(const struct outbox *ob, bool important);
/*
 * Makes room for one more write, of `bytes`, dropping others where `full` says so. False: there is none, and none was
 * dropped.
 */
bool outbox_make_room(struct outbox *ob, size_t bytes, bool important);

/* Counts a pending entry as dropped. */
void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* What came while it was under way is sent with it; without memory that stays behind, to follow. */
void outbox_absorb_follow_up(struct outbox *ob, struct entry *entry);
/* One that is on no list is due again after `delay`, never where that is past the end of time. */
void outbox_back_off(struct outbox *ob, struct entry *entry, enum backoff_why why, int64_t delay, int64_t now);
/* It is not tried again in this process: kept for the spool, or dropped, cause "closed". On no list. */
void outbox_leave(struct outbox *ob, struct entry *entry);
/* Takes note of a row that its entry's answer settled. */
void outbox_row_settled(struct outbox *ob, const struct entry *entry);
/* Nothing is to be sent, now or later. */
static inline bool outbox_idle(const struct outbox *ob)
{
	return ob->stats.writes == ob->left_len && !ob->more;
}
/* It was counted, and is on no list: the lane may collect it, and its follow-up waits. */
void outbox_settle(struct outbox *ob, struct entry *entry);
/* Both, for one that is on no list. */
void outbox_drop(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* Lets others have the lock after every so many of the entries that are gone through. */
void outbox_breathe(struct outbox *ob, unsigned *n);

#pragma GCC visibility pop

#endif
