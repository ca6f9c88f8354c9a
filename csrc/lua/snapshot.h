/*
 * snapshot.h - a broadcaster's counters, its recorders, and its sinks' suppressed events, copied at one moment.
 *
 * Making a Lua value may run a finalizer, which may record events or end the broadcaster. So the core's data is copied
 * first, without making Lua values, and Lua values are made from the copy.
 */
#ifndef EVREC_LUA_SNAPSHOT_H
#define EVREC_LUA_SNAPSHOT_H

#include "lua/broadcaster.h"

#pragma GCC visibility push(hidden)

struct snapshot_sink {
	evrec_sink_stats stats;
	const evrec_suppressed *suppressed;
	size_t suppressed_len;
};

struct snapshot {
	evrec_stats stats; /* stats.sinks is the length of `sinks` */
	const struct snapshot_sink *sinks;
	const evrec_recorder_stats *recorders;
	size_t recorders_len;
};

/* Whether a snapshot includes the event. */
typedef bool snapshot_filter(const evrec_suppressed *suppressed);

/*
 * Pushes a userdata, and returns the snapshot in it, valid while the userdata is on the stack: all counters, all
 * recorders, and the suppressed events that `filter` includes. Returns NULL, and pushes nothing, if the broadcaster was
 * ended. Raises if there is no memory.
 */
const struct snapshot *snapshot_push(lua_State *L, const struct broadcaster *b, snapshot_filter *filter);

#pragma GCC visibility pop

#endif
