/*
 * trace.h - the sink behind a trace: a file of the lines of event/trace_line.h. Its pipeline has no correlator: each
 * occurrence is a write of its own, made from a struct trace_draft, so that the outbox bounds and counts the waiting
 * events.
 */
#ifndef EVREC_SINK_TRACE_H
#define EVREC_SINK_TRACE_H

#include "event/key.h"
#include "event/trace_line.h"
#include "sink/sink.h"

#pragma GCC visibility push(hidden)

/* One occurrence, as it is given to outbox_submit. Borrowed. */
struct trace_draft {
	const evrec_fields *event;     /* without a name; `first` is when it happened */
	const struct keys *event_keys; /* of the event */
	struct trace_keys keys;
	int64_t now; /* when it was recorded */
};

/* Items made from a const struct trace_draft. */
extern const struct outbox_ops trace_ops;
/* The event of an item, without a name. Borrowed. */
evrec_fields trace_fields(const void *item);

/*
 * A sink with `traces` set. The file is not opened before the first event. `header` is copied. NULL and *err: EVREC_EINVALID
 * or EVREC_ENOMEM.
 */
evrec_sink *trace_sink_new(evrec_str path, uint64_t max_bytes, const struct trace_header *header, evrec_error *err);
/* True once the file is full or could not be opened: the sink takes no more events. Any thread. */
bool trace_sink_is_over(const evrec_sink *sink);
/* Counts an event at `now` that was lost on the way to the file, for the next line of a gap. Any thread. */
void trace_sink_lost(evrec_sink *sink, int64_t now);

#pragma GCC visibility pop

#endif
