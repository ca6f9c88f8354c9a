/* notices.h - a queue of due calls of on_drop and on_error, which wait while a lock is held. All zero is empty. */
#ifndef EVREC_NOTICES_H
#define EVREC_NOTICES_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Further calls are left out until a handle takes these; the drops and errors are counted all the same. */
#define NOTICES_MAX 10000

struct notice {
	struct notice *next;
	evrec_event *event; /* for on_drop; NULL: for on_error */
	const char *name;   /* of the cause or the error; static */
	char message[];     /* for on_error */
};

struct notices {
	struct notice *first, **end;
	size_t len;
};

/* Queues a call; without memory it is left out. `event` NULL: for on_error. */
void notices_add(struct notices *notices, const evrec_fields *event, const char *name, const char *message);
/* Moves all calls to the end of `to`. */
void notices_move(struct notices *from, struct notices *to);
/* Removes the first call, which is now the caller's; NULL: there is none. */
struct notice *notices_next(struct notices *notices);
void notice_free(struct notice *notice);
void notices_clear(struct notices *notices);

#pragma GCC visibility pop

#endif
