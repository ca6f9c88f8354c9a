#include "lua/watch.h"

#include <string.h>

#include "lua/broadcaster.h"
#include "lua/correlator.h"
#include "lua/event.h"
#include "lua/seconds.h"
#include "lua/sink.h"
#include "lua/stats.h"
#include "lua/table.h"

#define NAME "evrec.watch"

#define TRACE_MAX_BYTES ((size_t)256 << 20)

enum kind { SINK, FUNCTION, QUEUE };

struct watch {
	struct broadcaster
		*b; /* the user value holds it; __gc must not use it, for it may have been collected before */
	evrec_watch *watch;
	evrec_event *oldest; /* of a queue: taken out of it, and not yet returned by next; owned; or NULL */
	enum kind kind;
};

/* ---- starting ---- */

/* Pushes a watch that is not started yet. The broadcaster is at stack index 1. */
static struct watch *push_watch(lua_State *L, struct broadcaster *b, enum kind kind)
{
	struct watch *watch = box_new(L, &watch_type, sizeof(*watch));

	broadcaster_hold(L);
	watch->b = b;
	watch->kind = kind;
	return watch;
}

/*
 * Lets the broadcaster at stack index 1 keep the userdata at `index` alive. Runs no finalizer: one that polls would drop
 * hooks whose sink is not started yet (broadcaster_forget_hooks). So nothing that makes a Lua value is between keeping the
 * hooks and starting the sink.
 */
static void keep(lua_State *L, int index)
{
	index = lua_absindex(L, index);
	compat_getuservalue(L, 1);
	lua_pushvalue(L, index);
	lua_rawsetp(L, -2, lua_touserdata(L, index));
	lua_pop(L, 1);
}

static void forget(lua_State *L, int broadcaster, const void *address)
{
	compat_getuservalue(L, broadcaster);
	lua_pushnil(L);
	lua_rawsetp(L, -2, address);
	lua_pop(L, 1);
}

static const struct option sink_rows[] = {
	{ "correlator", OPTION_TABLE, 0, 0, 0, correlator_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static void copy_function(lua_State *L, int from, int to, const char *name)
{
	lua_getfield(L, from, name);
	lua_setfield(L, to, name);
}

/* Makes at stack index 4 the table of functions of the broadcaster's correlator, of which the options may have others. */
static void copy_functions(lua_State *L)
{
	lua_newtable(L);
	compat_getuservalue(L, 1);
	copy_function(L, 5, 4, "key_func");
	copy_function(L, 5, 4, "message_func");
	copy_function(L, 5, 4, "spam_key_func");
	lua_settop(L, 4);
}

/* The result of starting a sink, whose userdata is at the top of the stack. */
static int started(lua_State *L, struct broadcaster *b, const struct watch *watch, struct hooks *hooks,
                   const char *function, const evrec_error *err)
{
	evrec_sink_stats stats = { 0 };

	if (watch->watch == NULL) {
		forget(L, 1, hooks);
		return broadcaster_failure(L, function, err);
	}
	(void)evrec_watch_get_sink_stats(watch->watch, &stats);
	hooks->number = stats.number;
	b->hooks++;
	return 1;
}

struct trace_settings {
	size_t max_bytes;
	evrec_correlator_options correlator;
};

static const struct option trace_rows[] = {
	{ "max_bytes", OPTION_SIZE, offsetof(struct trace_settings, max_bytes), 4096, 1e15, NULL, false },
	{ "correlator", OPTION_TABLE, offsetof(struct trace_settings, correlator), 0, 0, correlator_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

/* Stack: 1 the broadcaster, 2 the path, 3 the options, 4 the functions of the correlator. */
int watch_new_trace(lua_State *L)
{
	const char *function = "broadcaster:start_trace";
	struct broadcaster *b = broadcaster_check(L);
	struct trace_settings settings = { .max_bytes = TRACE_MAX_BYTES };
	struct hooks *hooks;
	struct watch *watch;
	evrec_error err;
	evrec_str path;

	if (b == NULL) {
		return 3;
	}
	lua_settop(L, 3);
	luaL_checktype(L, 2, LUA_TSTRING);
	path.data = lua_tolstring(L, 2, &path.len);
	settings.correlator = b->correlator;
	copy_functions(L);
	options_read(L, 3, function, trace_rows, &settings, 4);
	hooks = hooks_push(L, &b->host);
	hooks_set(L, 4, hooks, &settings.correlator);
	watch = push_watch(L, b, SINK);
	if (!broadcaster_is_open(b)) {
		return broadcaster_closed(L);
	}
	keep(L, -2);
	watch->watch = evrec_broadcaster_start_trace(b->host.b, path, settings.max_bytes, &settings.correlator, &err);
	return started(L, b, watch, hooks, function, &err);
}

/* Stack: 1 the broadcaster, 2 the sink, 3 the options, 4 the functions of the sink and of its correlator. */
int watch_new_sink(lua_State *L)
{
	const char *function = "broadcaster:start_recording_to_sink";
	struct broadcaster *b = broadcaster_check(L);
	evrec_correlator_options options;
	struct hooks *hooks;
	struct watch *watch;
	evrec_sink *sink;
	evrec_error err;

	if (b == NULL) {
		return 3;
	}
	lua_settop(L, 3);
	box_check(L, 2, &sink_type);
	options = b->correlator;
	copy_functions(L);
	options_read(L, 3, function, sink_rows, &options, 4);
	hooks = hooks_push(L, &b->host);
	sink = sink_open(L, 2, hooks, 4, &err);
	if (sink == NULL) {
		return broadcaster_failure(L, function, &err);
	}
	hooks_set(L, 4, hooks, &options);
	watch = push_watch(L, b, SINK);
	if (!broadcaster_is_open(b)) {
		return broadcaster_closed(L);
	}
	keep(L, -2);
	watch->watch = evrec_broadcaster_start_recording_to_sink(b->host.b, sink, &options, &err);
	return started(L, b, watch, hooks, function, &err);
}

static void call_watcher(lua_State *L, void *arg)
{
	callback_push_event(L, arg);
	lua_call(L, 1, 0);
}

static void show_event(void *ctx, evrec_event *event)
{
	struct watch *watch = ctx;

	(void)callback_run(&watch->b->host, watch, CALLBACK_WATCHER, call_watcher, event, NULL);
}

/* The watch holds the function, and the broadcaster holds the watch until it is stopped. */
int watch_new_function(lua_State *L)
{
	struct broadcaster *b = broadcaster_check(L);
	struct watch *watch;
	evrec_error err;

	if (b == NULL) {
		return 3;
	}
	luaL_checktype(L, 2, LUA_TFUNCTION);
	lua_settop(L, 2);
	watch = push_watch(L, b, FUNCTION);
	anchor_set(L);
	compat_getuservalue(L, 3);
	lua_pushvalue(L, 2);
	lua_rawseti(L, -2, CALLBACK_WATCHER);
	lua_settop(L, 3);
	keep(L, 3);
	if (!broadcaster_is_open(b)) {
		forget(L, 1, watch);
		return broadcaster_closed(L);
	}
	watch->watch = evrec_broadcaster_start_event_watcher(b->host.b, show_event, watch, &err);
	if (watch->watch == NULL) {
		forget(L, 1, watch);
		return broadcaster_failure(L, "broadcaster:start_event_watcher", &err);
	}
	return 1;
}

struct queue_settings {
	size_t length;
	evrec_str full;
};

static const struct option queue_rows[] = {
	{ "queue_length", OPTION_SIZE, offsetof(struct queue_settings, length), 1, 1e7, NULL, false },
	{ "full", OPTION_STRING, offsetof(struct queue_settings, full), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int watch_new_queue(lua_State *L)
{
	const char *function = "broadcaster:watch";
	struct queue_settings settings = { 1000, EVREC_STR("drop") };
	struct broadcaster *b = broadcaster_check(L);
	struct watch *watch;
	evrec_error err;

	if (b == NULL) {
		return 3;
	}
	lua_settop(L, 2);
	options_read(L, 2, function, queue_rows, &settings, 0);
	if (settings.full.len == 4 && memcmp(settings.full.data, "wait", 4) == 0) {
		return luaL_error(L, "%s: option 'full': \"wait\" is impossible: recording never blocks", function);
	}
	if (settings.full.len != 4 || memcmp(settings.full.data, "drop", 4) != 0) {
		return luaL_error(L, "%s: option 'full': expected \"drop\"", function);
	}
	watch = push_watch(L, b, QUEUE);
	if (!broadcaster_is_open(b)) {
		return broadcaster_closed(L);
	}
	watch->watch = evrec_broadcaster_watch(b->host.b, settings.length, &err);
	return watch->watch != NULL ? 1 : broadcaster_failure(L, function, &err);
}

/* ---- methods ---- */

/* Raises if the watch was collected: a finalizer at the end of the Lua state still uses it. */
static struct watch *check_watch(lua_State *L)
{
	struct watch *watch = box_check(L, 1, &watch_type);

	if (watch->watch == NULL) {
		luaL_error(L, NAME ": was collected");
	}
	return watch;
}

/* Returns the oldest event of a queue, which stays the watch's. NULL: none waits. */
static const evrec_event *peek(struct watch *watch)
{
	if (watch->oldest == NULL) {
		watch->oldest = evrec_watch_next(watch->watch);
	}
	return watch->oldest;
}

static int watch_next(lua_State *L)
{
	struct watch *watch = check_watch(L);
	const evrec_event *event;
	void *memory = NULL;
	size_t size = 0;

	if (watch->kind != QUEUE) {
		return luaL_error(L, NAME ": next works on a watch of broadcaster:watch alone");
	}
	/*
	 * If there is no memory, the event stays. A finalizer may take it meanwhile, and then the next event must fit.
	 */
	while ((event = peek(watch)) != NULL && evrec_packed_size(event) > size) {
		size = evrec_packed_size(event);
		lua_settop(L, 1);
		memory = compat_newuserdata(L, size);
	}
	if (event == NULL) {
		lua_pushnil(L);
		return 1;
	}
	(void)evrec_packed_copy(memory, event);
	event_set_type(L);
	evrec_event_release(watch->oldest);
	watch->oldest = NULL;
	return 1;
}

static void stop(lua_State *L, const struct watch *watch)
{
	evrec_watch_stop(watch->watch);
	if (watch->kind == FUNCTION) {
		lua_settop(L, 2);
		compat_getuservalue(L, 1);
		lua_rawgeti(L, -1, 1);
		forget(L, 4, watch);
		lua_settop(L, 2);
	}
}

static int watch_stop(lua_State *L)
{
	stop(L, check_watch(L));
	lua_pushboolean(L, 1);
	return 1;
}

static int watch_stats(lua_State *L)
{
	const struct watch *watch = check_watch(L);
	evrec_sink_stats stats;
	uint64_t dropped;
	size_t queued;

	if (watch->kind == SINK) {
		if (!evrec_watch_get_sink_stats(watch->watch, &stats)) {
			return broadcaster_closed(L);
		}
		stats_push_sink(L, &stats);
		return 1;
	}
	evrec_watch_get_queue(watch->watch, &queued, &dropped);
	queued += watch->oldest != NULL;
	lua_newtable(L);
	table_set_count(L, "queued", queued);
	table_set_count(L, "dropped", dropped);
	return 1;
}

/* Stops the watch, and flushes the broadcaster if the watch is a sink. */
static int watch_close(lua_State *L)
{
	const struct watch *watch = check_watch(L);
	int64_t timeout = seconds_check(L, 2, "watch:close", "timeout", DEFAULT_TIMEOUT);
	struct broadcaster *b = watch->b;
	evrec_error err;
	int code = 0;

	stop(L, watch);
	if (watch->kind == SINK && b->host.b != NULL) {
		lua_State *outer = broadcaster_enter(b, L);

		code = evrec_broadcaster_flush(b->host.b, timeout, &err);
		broadcaster_leave(b, outer);
	} else if (watch->kind == SINK) {
		code = broadcaster_was_left(b, &err);
	}
	lua_pushboolean(L, code == 0);
	if (code == 0) {
		return 1;
	}
	lua_pushstring(L, err.message);
	return 2;
}

static int watch_mark_end(lua_State *L)
{
	const struct watch *watch = box_check(L, 1, &watch_type);

	if (watch->watch != NULL) {
		stop(L, watch);
	}
	return 0;
}

/* Stops a queue, which nothing can read any more. A sink or a function goes on without the handle. */
static int watch_gc(lua_State *L)
{
	struct watch *watch = lua_touserdata(L, 1);

	if (watch->watch != NULL && watch->kind == QUEUE) {
		evrec_watch_stop(watch->watch);
	}
	evrec_watch_free(watch->watch);
	watch->watch = NULL;
	evrec_event_release(watch->oldest);
	watch->oldest = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "next", watch_next },   { "stop", watch_stop }, { "close", watch_close },
	{ "stats", watch_stats }, { NULL, NULL },
};
static const luaL_Reg metamethods[] = {
	{ "__gc", watch_gc },
	{ "__close", watch_mark_end },
	{ NULL, NULL },
};

const struct box_type watch_type = { NAME, methods, metamethods };
