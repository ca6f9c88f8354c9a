/* messages.h - a queue of messages for people, which suppresses repeated ones. Not locked: belongs to an outbox. */
#ifndef EVREC_MESSAGES_H
#define EVREC_MESSAGES_H

#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

#define MESSAGES_QUEUED 16
#define MESSAGES_REMEMBERED 64

/* All zero is an empty queue. */
struct messages {
	struct outbox_message queue[MESSAGES_QUEUED];
	size_t first, len;
	uint64_t lost;              /* the queue was full */
	struct outbox_message last; /* queued or suppressed */
	int64_t last_seen;
	struct outbox_message latest;       /* the last one that was queued, or lost as the queue was full */
	uint64_t seen[MESSAGES_REMEMBERED]; /* hashes of those reported once */
	size_t seen_len, seen_at;
};

/* Queues a message, unless it differs from the last one only in its numbers. `name` is static; `now` monotonic. */
void messages_add(struct messages *r, const char *name, const char *message, int64_t now);
/* Queues a message, unless its `key` is among the latest keys of this function. */
void messages_add_once(struct messages *r, const char *name, const char *message, const char *key);
bool messages_next(struct messages *r, struct outbox_message *report);

#pragma GCC visibility pop

#endif
