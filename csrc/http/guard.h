/*
 * guard.h - bounds what a server can make one step of the client do. Belongs to the client's thread.
 *
 * Before 8.7.0, libcurl reads an HTTP/2 connection for as long as there is anything to read, inside one call, unless it
 * meets something for the request at hand: a server that sends empty frames fast enough holds up curl_multi_perform for
 * ever, and no timeout of libcurl's is looked at. The one function of ours that is called meanwhile is that of
 * tls_records.h. It counts, and breaks the connections.
 */
#ifndef EVREC_GUARD_H
#define EVREC_GUARD_H

#include "http/sockets.h"
#include "http/tls_records.h"

#pragma GCC visibility push(hidden)

struct guard {
	const struct sockets *sockets; /* that it breaks */
	struct tls_records records;
	size_t spent;    /* on records since the step began or a request was given a part of its body */
	unsigned breaks; /* how often the connections were broken */
};

/* Of the handle `easy`, whose connections `g` and `sockets` outlive. False: no memory. */
bool guard_set_up(struct guard *g, const struct sockets *sockets, CURL *easy);

/* A step begins, or a request was given a part of its body. */
static inline void guard_rewind(struct guard *g)
{
	g->spent = 0;
}

#pragma GCC visibility pop

#endif
