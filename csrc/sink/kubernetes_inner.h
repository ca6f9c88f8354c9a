/*
 * kubernetes_inner.h - the protocol of a Kubernetes sink, for the files that implement it.
 *
 *   kubernetes_protocol.c  its life, its steps, and requests
 *   kubernetes_answers.c   acts on answers
 */
#ifndef EVREC_KUBERNETES_INNER_H
#define EVREC_KUBERNETES_INNER_H

#include "exec/plugin.h"
#include "sink/kubernetes_fallback.h"
#include "sink/kubernetes_resume.h"
#include "sink/sink.h"

#pragma GCC visibility push(hidden)

/* Writes events to an API server. */
struct kubernetes {
	struct protocol base;
	struct http_client *client;
	struct plugin *plugin; /* the credential plugin; NULL: the options have the credentials */
	encode_func *encode;
	struct sender *sender; /* the argument of the present send or step */
	unsigned connections;  /* of the client, at the last answer */
	unsigned answers;      /* since `connections` changed */
	int64_t started;       /* when the server may have started last; monotonic ns */
	int64_t started_until; /* until then the server may have just started; monotonic ns, 0: it has not */
	struct fallback fallback;
	struct sent *requests;  /* max_in_flight of them */
	struct sent *free;      /* those of them that are not in use */
	struct resume *resume;  /* NULL: series begin anew */
	evrec_error unresolved; /* the fault of resolved.h, not reported yet */
};

/* ---- kubernetes_answers.c ---- */

/* The events of the client, whose owner is a `struct kubernetes`. */
extern const struct http_events kubernetes_events;
/* Acts on the answer to a write's request, or on the error that prevented its sending. */
void kubernetes_answered(struct kubernetes *k, struct sent *sent, evrec_answer *answer, bool lacks_api, bool timed_out);

#pragma GCC visibility pop

#endif
