/*
 * trace_item.h - one occurrence that waits to be written to a trace.
 */
#ifndef EVREC_SINK_TRACE_ITEM_H
#define EVREC_SINK_TRACE_ITEM_H

#include "event/event.h"
#include "event/trace_line.h"

#pragma GCC visibility push(hidden)

struct trace_item {
	int64_t now, at;
	evrec_event *event;     /* without name and times */
	struct trace_keys keys; /* their bytes are in `text` */
	size_t size;
	char text[];
};

#pragma GCC visibility pop

#endif
