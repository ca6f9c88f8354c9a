/*
 * trace_inner.h - the sink of a trace, for the files that implement it.
 *
 *   trace.c            the sink
 *   trace_protocol.c   its lines
 *   trace_file.c       its file
 */
#ifndef EVREC_SINK_TRACE_INNER_H
#define EVREC_SINK_TRACE_INNER_H

#include "sink/trace.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct trace_sink {
	evrec_sink base;
	char *path;
	uint64_t max_bytes;
	struct trace_header header;
	atomic_bool over;
	/* Events that were lost since the last line of a gap. */
	_Atomic uint64_t lost;
	_Atomic int64_t lost_from, lost_to;
};

static inline struct trace_sink *trace_sink_of(evrec_sink *sink)
{
	return (struct trace_sink *)sink;
}

/* The `open` of the sink. */
struct protocol *trace_open_protocol(evrec_sink *sink, evrec_error *err);

#pragma GCC visibility pop

#endif
