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
	struct plugin *plugin; /* gets the credentials; NULL: they were given */
	encode_func *encode;
	struct sender *sender; /* the one that runs a send or a step */
	unsigned connections;  /* of the client, at the last answer */
	unsigned answers;      /* since that number changed */
	int64_t started_until; /* until then the server may have just started; monotonic ns, 0: it has not */
	struct fallback fallback;
	struct sent *requests;  /* max_in_flight of them */
	struct sent *free;      /* those of them that are not under way */
	struct resume *resume;  /* NULL: series begin anew */
	evrec_error unresolved; /* of resolved.h, to be told */
};

/* ---- kubernetes_answers.c ---- */

/* The events of the client, whose owner is a `struct kubernetes`. */
extern const struct http_events kubernetes_events;
/* Acts on the answer to a write's request, or on why that was not sent. */
void kubernetes_answered(struct kubernetes *k, struct sent *sent, evrec_answer *answer, bool lacks_api, bool timed_out);

#pragma GCC visibility pop

#endif
