/*
 * resolved.h - the addresses of a server's name, looked up when its sink is made (the option resolve_early), and used by its
 * protocols. All zero: libcurl looks the name up.
 */
#ifndef EVREC_SINK_RESOLVED_H
#define EVREC_SINK_RESOLVED_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct http_client;
struct outbox;

struct resolved {
	char *addresses;   /* an entry of addresses_look_up; or NULL */
	evrec_error fault; /* why there are none; code 0: none are needed */
};

/*
 * Looks up the name in this URL, in the caller's thread. A name without an address is not a failure, as it may get one
 * later. False: no memory.
 */
bool resolved_look_up(struct resolved *r, evrec_str server);
/*
 * Makes the client use the addresses, if there are any, and sets *untold to the fault. Both are copied. False: no
 * memory.
 */
bool resolved_use(const struct resolved *r, struct http_client *client, evrec_error *untold);
/* Reports the fault, unless it was reported. */
void resolved_tell(evrec_error *untold, struct outbox *ob);
void resolved_free(struct resolved *r);

#pragma GCC visibility pop

#endif
