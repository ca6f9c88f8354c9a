/*
 * sink.h - a sink is what its transports are made from: one for every lane, and another in a forked child.
 */
#ifndef EVREC_SINK_H
#define EVREC_SINK_H

#include "deliver/transport.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct evrec_sink {
	atomic_uint refs;
	const char *name; /* of its kind, in stats */
	struct transport *(*open)(const evrec_sink *sink, evrec_error *err);
	evrec_kubernetes_options options; /* of "kubernetes"; limits, max_in_flight and threadless hold for all */
	char *strings;                    /* what `options` points to, or the path of "file" */
	evrec_sink_ops ops;               /* of the embedder's own */
	void *ctx;
};

/* The transport of a sink whose functions are the embedder's (flow/call.c). It retains the sink. */
struct transport *call_transport_new(evrec_sink *sink, evrec_error *err);

#pragma GCC visibility pop

#endif
