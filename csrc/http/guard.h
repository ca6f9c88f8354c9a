/*
 * guard.h - bounds the time for which a server can keep one step of the client busy. Belongs to the client's thread.
 *
 * Before 8.7.0, libcurl reads an HTTP/2 connection inside one call until there is nothing to read, or data for the
 * current request: a server that sends empty frames fast enough blocks curl_multi_perform for ever, and libcurl checks
 * no timeout. Meanwhile libcurl calls only one function of evrec, that of tls_records.h. It counts bytes, and breaks
 * the connections.
 */
#ifndef EVREC_GUARD_H
#define EVREC_GUARD_H

#include "http/sockets.h"
#include "http/tls_records.h"

#pragma GCC visibility push(hidden)

struct guard {
	const struct sockets *sockets; /* the connections that it breaks */
	struct tls_records records;
	size_t spent;    /* bytes of records since the step began or a request got a part of its body */
	unsigned breaks; /* how often the connections were broken */
};

/* Guards the connections of the handle `easy`, which `g` and `sockets` outlive. False: no memory. */
bool guard_set_up(struct guard *g, const struct sockets *sockets, CURL *easy);

/* A step begins, or a request got a part of its body. */
static inline void guard_rewind(struct guard *g)
{
	g->spent = 0;
}

#pragma GCC visibility pop

#endif
