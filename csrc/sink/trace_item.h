/*
 * trace_item.h - one occurrence that waits to be written to a trace.
 */
#ifndef EVREC_SINK_TRACE_ITEM_H
#define EVREC_SINK_TRACE_ITEM_H

#include "event/packed.h"
#include "event/trace_line.h"

#pragma GCC visibility push(hidden)

/* After the struct lies the packed event, without name and times; then the bytes of the keys. */
struct trace_item {
	int64_t now, at;
	struct trace_keys keys;
};

static inline const evrec_packed *trace_packed(const struct trace_item *item)
{
	return (const evrec_packed *)(item + 1);
}

#pragma GCC visibility pop

#endif
