/*
 * addresses.h - resolves a server's name early, for a process that cannot do so later: it will be in a chroot without
 * the resolver's files, or may start no thread, which libcurl's threaded resolver needs.
 */
#ifndef EVREC_ADDRESSES_H
#define EVREC_ADDRESSES_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define ADDRESSES_MAX 16 /* of one name; further ones are left out */

struct addrinfo;

/*
 * Looks up the name in a URL that http_check_options accepts, in the caller's thread; blocks for as long as the
 * system's resolver takes. 0: *entry is the caller's, to be freed with mem_free: an entry for CURLOPT_RESOLVE, or NULL
 * if the URL has an address. EVREC_ESYSTEM: the name has no address now, and the message says why; EVREC_ENOMEM.
 */
int addresses_look_up(evrec_str server, char **entry, evrec_error *err);
/*
 * Makes the entry "host:port:address,address". IPv6 addresses with a scope are left out, as libcurl would refuse the
 * whole entry. 0, and *entry is the caller's; EVREC_ESYSTEM: no address is left; EVREC_ENOMEM.
 */
int addresses_format(const char *host, const char *port, const struct addrinfo *found, char **entry, evrec_error *err);

#pragma GCC visibility pop

#endif
