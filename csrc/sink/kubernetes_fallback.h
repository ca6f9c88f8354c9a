/*
 * kubernetes_fallback.h - the requests of a Kubernetes sink, and the second ones, by core/v1, for writes that
 * events.k8s.io/v1 has refused (kubernetes/api_choice.h). Whoever drives the sender.
 */
#ifndef EVREC_KUBERNETES_FALLBACK_H
#define EVREC_KUBERNETES_FALLBACK_H

#include "kubernetes/api_choice.h"
#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

/* A request in flight, or a write to be sent once more by core/v1. */
struct sent {
	struct sent *next; /* in the list of the free ones, or of those to be sent once more */
	struct entry *entry;
	int64_t begun;                                      /* when the request was begun; monotonic ns */
	enum evrec_api api;                                 /* by which it was sent */
	enum api_news refusal;                              /* by events.k8s.io/v1: _MISSING or _FORBIDDEN; else 0 */
	char refused[sizeof(((evrec_answer *)0)->message)]; /* the message of this refusal */
};

struct fallback {
	struct api_choice choice;
	struct sent *again; /* to be sent once more */
};

/* The API by which the write is to be sent, for the first time or once more. */
enum evrec_api fallback_api(const struct fallback *f, const struct sent *sent);
/*
 * Takes the result of a request. True: the write is to be sent once more, and is kept for fallback_next. False: the
 * answer is final; its message may have been replaced by a better one. Reports a change of the API to `ob`.
 */
bool fallback_takes(struct fallback *f, struct outbox *ob, struct sent *sent, enum api_news news, evrec_answer *answer);
/* The next write to be sent once more; NULL: none. */
struct sent *fallback_next(struct fallback *f);

#pragma GCC visibility pop

#endif
