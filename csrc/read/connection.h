/*
 * connection.h - sends GET requests to an API server, one at a time, with the server's address and the credentials of a
 * Kubernetes sink.
 *
 *   IDLE  --connection_get------------------------> DUE
 *   DUE   --there are credentials-----------------> ASKED
 *         --they cannot be had--------------------> IDLE
 *   ASKED --the first 401: with fresh credentials-> DUE
 *         --the answer has ended------------------> IDLE
 *
 * For one thread at a time.
 */
#ifndef EVREC_READ_CONNECTION_H
#define EVREC_READ_CONNECTION_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

enum connection_news {
	CONNECTION_NONE,  /* the deadline has passed */
	CONNECTION_BYTES, /* `body` has more bytes */
	CONNECTION_ENDED, /* the answer has ended, or there is none; `status` and `message` are set */
};

struct connection {
	struct buf body; /* of a 2xx, as far as it has come; the caller may take bytes from it */
	int status;      /* of the answer that has ended; 0: it is not whole, or there was none */
	bool too_long;   /* it is not whole as `body` exceeded the limit */
	int64_t retry_after;
	char message[256]; /* unless the status is a 2xx */
	struct connection_inner *inner;
};

/* Retains nothing of the sink, which must live longer. NULL: EVREC_ENOMEM, or an option of the sink is wrong. */
struct connection *connection_new(const evrec_sink *sink, evrec_error *err);
void connection_free(struct connection *c); /* NULL is fine */
/*
 * Begins a GET of this path, a string of mem_alloc that it owns, for at most `timeout` ns (0: the sink's timeout).
 * Cancels an earlier request.
 */
void connection_get(struct connection *c, char *path, int64_t timeout);
/* Sends and receives until there is news, or until `deadline` (monotonic ns). Only after connection_get. */
enum connection_news connection_step(struct connection *c, int64_t deadline);

#pragma GCC visibility pop

#endif
