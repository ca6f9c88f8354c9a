/*
 * reports.h - messages for people, queued, without repeating themselves. Not locked: belongs to an outbox.
 */
#ifndef EVREC_REPORTS_H
#define EVREC_REPORTS_H

#include "deliver/outbox.h"

#pragma GCC visibility push(hidden)

#define REPORTS_QUEUED 16
#define REPORTS_REMEMBERED 64

/* All zero is an empty queue. */
struct reports {
	struct outbox_report queue[REPORTS_QUEUED];
	size_t first, len;
	uint64_t lost;             /* the queue was full */
	struct outbox_report last; /* queued or suppressed */
	int64_t last_seen;
	uint64_t seen[REPORTS_REMEMBERED]; /* hashes of those reported once */
	size_t seen_len, seen_at;
};

/* Queues it, unless it is like the last but for its numbers. `name` is static; `now` monotonic. */
void reports_add(struct reports *r, const char *name, const char *message, int64_t now);
/* Queues it, unless it is among the latest that were given here; `key` tells them apart. */
void reports_add_once(struct reports *r, const char *name, const char *message, const char *key);
bool reports_next(struct reports *r, struct outbox_report *report);

#pragma GCC visibility pop

#endif
