/* raw_connection.h - the sockets of a test that speaks with a share by itself. A forked child keeps its copies. */
#ifndef RAW_CONNECTION_H
#define RAW_CONNECTION_H

#include "share/endpoint.h"

/* Connects to an abstract name, "@name". The caller closes the descriptor, which does not block; -1: it was not possible. */
int raw_connect(const char *name);
/* Accepts a connection to a bound endpoint; as raw_connect. -1: none waits. */
int raw_accept(const struct endpoint *e);

#endif
