/*
 * guard.h - bounds what a server can make one step of the client do. Belongs to the client's thread.
 *
 * Before 8.7.0, libcurl reads an HTTP/2 connection for as long as there is anything to read, inside one call, unless it
 * meets something for the request at hand: a server that sends empty frames fast enough holds up curl_multi_perform for
 * ever, and no timeout of libcurl's is looked at. libcurl's trace of TLS records is the one function of ours that is
 * called meanwhile. It counts, and breaks the connections.
 */
#ifndef EVREC_GUARD_H
#define EVREC_GUARD_H

#include "base/base.h"
#include "http/curl.h"

#include <sys/types.h>

#pragma GCC visibility push(hidden)

#define GUARD_SOCKETS 32

struct guard {
	struct guarded_socket {
		int fd;
		ino_t inode;
	} sockets[GUARD_SOCKETS];
	size_t sockets_len;
	size_t spent;    /* on records since the step began or a request was given a part of its body */
	unsigned breaks; /* how often the connections were broken */
	unsigned opened; /* sockets, ever */
};

/* Of the handle `easy`, whose connections `g` outlives. False: no memory. */
bool guard_set_up(struct guard *g, CURL *easy);

/* A step begins, or a request was given a part of its body. */
static inline void guard_rewind(struct guard *g)
{
	g->spent = 0;
}

#pragma GCC visibility pop

#endif
