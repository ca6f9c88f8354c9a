#include "lua/broadcaster.h"

#include "lua/correlator.h"
#include "lua/event.h"
#include "lua/recorder.h"
#include "lua/sink.h"
#include "lua/stats.h"
#include "lua/watch.h"

#define NAME "evrec.broadcaster"

/* ---- callbacks ---- */

struct error_call {
	const char *message, *name;
};

static void call_on_error(lua_State *L, void *arg)
{
	const struct error_call *call = arg;

	lua_pushstring(L, call->message);
	lua_pushstring(L, call->name);
	lua_call(L, 2, 0);
}

/* An on_error that raises is counted as every callback is, but cannot be told of it. */
static void on_error(void *ctx, const char *message, const char *name)
{
	struct broadcaster *b = ctx;
	struct error_call call = { message, name };

	if (b->reporting) {
		return;
	}
	b->reporting = true;
	(void)callback_run(&b->host, b, "on_error", call_on_error, &call, NULL);
	b->reporting = false;
}

struct drop_call {
	const evrec_event *event;
	const char *why;
};

static void call_on_drop(lua_State *L, void *arg)
{
	const struct drop_call *call = arg;
	evrec_event **slot = event_push(L);

	*slot = evrec_event_retain((evrec_event *)call->event);
	lua_pushstring(L, call->why);
	lua_call(L, 2, 0);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct broadcaster *b = ctx;
	struct drop_call call = { event, why };

	(void)callback_run(&b->host, b, "on_drop", call_on_drop, &call, NULL);
}

/* ---- its life ---- */

struct settings {
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
};

static const struct option rows[] = {
	{ "clock", OPTION_CLOCK, offsetof(struct settings, options.clock), 0, 0, NULL, false },
	{ "max_message_bytes", OPTION_SIZE, offsetof(struct settings, options.max_message_bytes), 16, 262144, NULL,
	  false },
	{ "on_error", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "on_drop", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "correlator", OPTION_TABLE, offsetof(struct settings, correlator), 0, 0, correlator_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int broadcaster_new(lua_State *L)
{
	struct settings settings;
	struct broadcaster *b;
	evrec_error err;

	lua_settop(L, 1);
	evrec_broadcaster_options_init(&settings.options);
	evrec_correlator_options_init(&settings.correlator);
	lua_newtable(L);
	options_read(L, 1, NAME, rows, &settings, 2);
	b = box_new(L, &broadcaster_type, sizeof(*b));
	b->correlator = settings.correlator;
	anchor_set(L);
	lua_pushvalue(L, 2);
	compat_setuservalue(L, -2);
	settings.options.on_error = functions_have(L, 2, "on_error") ? on_error : NULL;
	settings.options.on_drop = functions_have(L, 2, "on_drop") ? on_drop : NULL;
	settings.options.ctx = b;
	b->host.b = evrec_broadcaster_new(&settings.options, &err);
	return b->host.b != NULL ? 1 : options_refused(L, NAME, &err);
}

static void end(struct broadcaster *b)
{
	evrec_broadcaster *core = b->host.b;

	b->host.b = NULL;
	b->closing = false;
	evrec_broadcaster_free(core);
}

void broadcaster_leave(struct broadcaster *b, lua_State *outer)
{
	host_leave(&b->host, outer);
	if (b->closing && outer == NULL) {
		end(b);
	}
}

static int broadcaster_gc(lua_State *L)
{
	end(lua_touserdata(L, 1));
	return 0;
}

/* What flush and shutdown return from now on are the counters as they stand. */
static int broadcaster_close(lua_State *L)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (b->host.b == NULL || b->closing) {
		return 0;
	}
	compat_getuservalue(L, 1);
	stats_push(L, b->host.b);
	lua_setfield(L, -2, "stats");
	if (b->host.L != NULL) {
		b->closing = true;
	} else {
		end(b);
	}
	return 0;
}

/* ---- methods ---- */

struct broadcaster *broadcaster_check(lua_State *L)
{
	const evrec_error closed = { EVREC_ECLOSED, "the broadcaster is closed" };
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (b->host.b == NULL || b->closing) {
		(void)push_failure(L, &closed);
		return NULL;
	}
	return b;
}

void broadcaster_hold(lua_State *L)
{
	lua_createtable(L, 1, 0);
	lua_pushvalue(L, 1);
	lua_rawseti(L, -2, 1);
	compat_setuservalue(L, -2);
}

int broadcaster_failure(lua_State *L, const char *what, const evrec_error *err)
{
	return err->code == EVREC_EINVALID ? options_refused(L, what, err) : push_failure(L, err);
}

static int broadcaster_poll(lua_State *L)
{
	struct broadcaster *b = broadcaster_check(L);
	lua_State *outer;

	if (b == NULL) {
		return 3;
	}
	outer = broadcaster_enter(b, L);
	evrec_broadcaster_poll(b->host.b);
	broadcaster_leave(b, outer);
	lua_pushboolean(L, 1);
	return 1;
}

/* Of one that was ended by __close, what was counted until then. */
static int push_stats(lua_State *L, const struct broadcaster *b)
{
	if (b->host.b != NULL) {
		stats_push(L, b->host.b);
	} else {
		compat_getuservalue(L, 1);
		lua_getfield(L, -1, "stats");
		lua_remove(L, -2);
	}
	return 1;
}

/* What flush and shutdown return for the core's code. */
static int push_outcome(lua_State *L, const struct broadcaster *b, int code)
{
	const evrec_error inside = { EVREC_EINVALID, "called from inside a callback of this broadcaster" };

	if (code == EVREC_EINVALID) {
		return push_failure(L, &inside);
	}
	lua_pushboolean(L, code == 0);
	return 1 + push_stats(L, b);
}

/* Flush or shutdown, with the timeout at index 2. */
static int settle(lua_State *L, const char *what, int (*func)(evrec_broadcaster *b, int64_t timeout))
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);
	int64_t timeout = seconds_check(L, 2, what, "timeout", DEFAULT_TIMEOUT);
	lua_State *outer;
	int code = 0;

	if (b->host.b != NULL) {
		outer = broadcaster_enter(b, L);
		code = func(b->host.b, timeout);
		broadcaster_leave(b, outer);
	}
	return push_outcome(L, b, code);
}

static int broadcaster_flush(lua_State *L)
{
	return settle(L, "broadcaster:flush", evrec_broadcaster_flush);
}

static int broadcaster_shutdown(lua_State *L)
{
	return settle(L, "broadcaster:shutdown", evrec_broadcaster_shutdown);
}

static int broadcaster_stats(lua_State *L)
{
	return push_stats(L, box_check(L, 1, &broadcaster_type));
}

static const luaL_Reg methods[] = {
	{ "start_recording_to_sink", watch_new_sink },
	{ "start_event_watcher", watch_new_function },
	{ "watch", watch_new_queue },
	{ "new_recorder", recorder_new },
	{ "poll", broadcaster_poll },
	{ "flush", broadcaster_flush },
	{ "shutdown", broadcaster_shutdown },
	{ "close", broadcaster_shutdown },
	{ "stats", broadcaster_stats },
	{ NULL, NULL },
};
static const luaL_Reg metamethods[] = {
	{ "__gc", broadcaster_gc },
	{ "__close", broadcaster_close },
	{ NULL, NULL },
};

const struct box_type broadcaster_type = { NAME, methods, metamethods };
