/*
 * outbox_inner.h - what the files of the outbox share. Everything here is called with the lock held.
 */
#ifndef EVREC_OUTBOX_INNER_H
#define EVREC_OUTBOX_INNER_H

#include "deliver/heap.h"
#include "deliver/reports.h"
#include "deliver/table.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct entry_list {
	struct entry *head, *tail;
};

struct outbox {
	pthread_mutex_t lock;
	pthread_cond_t progress; /* something was answered or dropped */
	struct outbox_ops ops;
	size_t max_pending;
	uint64_t random;
	bool closed;
	int64_t now; /* the latest time a driver told */
	struct table table;
	struct entry_list waiting; /* in order of taking */
	struct entry_list in_flight;
	struct entry_list answered; /* oldest first */
	struct heap backoff;
	struct outbox_stats stats;
	struct reports reports;
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
/* Counts a pending entry as dropped. */
void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause);
/* It was counted, and is on no list: the lane may collect it, and its follow-up waits. */
void outbox_settle(struct outbox *ob, struct entry *entry);

#pragma GCC visibility pop

#endif
