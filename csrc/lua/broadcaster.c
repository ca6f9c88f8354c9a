#include "lua/broadcaster.h"

#include "lua/correlator.h"
#include "lua/event.h"
#include "lua/seconds.h"
#include "lua/sink.h"
#include "lua/stats.h"
#include "lua/telling.h"
#include "lua/users.h"

#include <stdio.h>
#include <string.h>

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

/* No thread could be started, and none was requested: normal in HAProxy's workers. */
static bool is_harmless(const struct broadcaster *b, const char *name)
{
	return b->poller == POLLER_HOST && b->drive == EVREC_DRIVE_AUTO && strcmp(name, "thread") == 0;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct broadcaster *b = ctx;
	struct error_call call = { message, name };

	if (!is_harmless(b, name)) {
		(void)callback_run(&b->host, b, CALLBACK_ON_ERROR, call_on_error, &call, NULL);
	}
}

struct drop_call {
	const evrec_event *event;
	const char *why;
};

static void call_on_drop(lua_State *L, void *arg)
{
	const struct drop_call *call = arg;

	callback_push_event(L, call->event);
	lua_pushstring(L, call->why);
	lua_call(L, 2, 0);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct broadcaster *b = ctx;
	struct drop_call call = { event, why };

	(void)callback_run(&b->host, b, CALLBACK_ON_DROP, call_on_drop, &call, NULL);
}

/* ---- creation and end ---- */

struct settings {
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	struct option_strings share_users;
	bool silent; /* on_error is false */
};

static const struct option drive_words[] = {
	{ "auto", OPTION_VALUE, EVREC_DRIVE_AUTO, 0, 0, NULL, false },
	{ "thread", OPTION_VALUE, EVREC_DRIVE_THREAD, 0, 0, NULL, false },
	{ "poll", OPTION_VALUE, EVREC_DRIVE_POLL, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option rows[] = {
	{ "name", OPTION_STRING, offsetof(struct settings, options.name), 1, 0, NULL, false },
	{ "share", OPTION_STRING, offsetof(struct settings, options.share), 1, 0, NULL, false },
	{ "share_users", OPTION_NAMES, offsetof(struct settings, share_users), 0, 0, NULL, false },
	{ "clock", OPTION_CLOCK, offsetof(struct settings, options.clock), 0, 0, NULL, false },
	{ "max_message_bytes", OPTION_SIZE, offsetof(struct settings, options.max_message_bytes), 16, 262144, NULL,
	  false },
	{ "drive", OPTION_WORD, offsetof(struct settings, options.drive), 0, 0, drive_words, false },
	{ "on_error", OPTION_FUNCTION_OR_FALSE, offsetof(struct settings, silent), 0, 0, NULL, false },
	{ "on_drop", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "correlator", OPTION_TABLE, offsetof(struct settings, correlator), 0, 0, correlator_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int broadcaster_new(lua_State *L)
{
	struct settings settings = { .silent = false };
	struct broadcaster *b;
	evrec_error err;

	lua_settop(L, 1);
	evrec_broadcaster_options_init(&settings.options);
	evrec_correlator_options_init(&settings.correlator);
	drive_refuse_thread(L, NAME, "there is none; use the option 'drive'");
	lua_newtable(L);
	options_read(L, 1, NAME, rows, &settings, 2);
	settings.options.share_users_len = settings.share_users.len;
	settings.options.share_users = users_push(L, &settings.share_users, &err);
	if (settings.options.share_users == NULL) {
		return options_refused(L, NAME, &err);
	}
	b = box_new(L, &broadcaster_type, sizeof(*b));
	b->correlator = settings.correlator;
	b->drive = settings.options.drive;
	b->poller = drive_poller(L);
	host_begin(&b->host, L);
	anchor_set(L);
	lua_pushvalue(L, 2);
	compat_setuservalue(L, -2);
	settings.options.on_error = functions_number(L, 2, 2, CALLBACK_ON_ERROR) ? on_error : NULL;
	settings.options.on_drop = functions_number(L, 2, 2, CALLBACK_ON_DROP) ? on_drop : NULL;
	/* The program may be a master, which must not write for its workers: core.may_own. */
	settings.options.share_client_only = b->poller == POLLER_WANTED;
	settings.options.ctx = b;
	settings.options.loud = b->loud = !settings.silent && settings.options.on_error == NULL;
	b->host.b = evrec_broadcaster_new(&settings.options, &err);
	return b->host.b != NULL ? 1 : options_refused(L, NAME, &err);
}

/* Occurrences that wait. */
static uint64_t unwritten(const evrec_broadcaster *core)
{
	evrec_stats stats;
	evrec_sink_stats sink;
	uint64_t sum;

	evrec_broadcaster_get_stats(core, &stats);
	sum = stats.queued;
	for (size_t number = 1; evrec_broadcaster_next_sink(core, &number); number++) {
		if (evrec_broadcaster_get_sink_stats(core, number, &sink)) {
			sum += sink.pending + sink.counted;
		}
	}
	return sum;
}

/* Prints the remaining lines, and ends the broadcaster. No Lua runs, as the Lua state may be closing. */
static void end(struct broadcaster *b)
{
	evrec_broadcaster *core = b->host.b;

	if (core != NULL && b->loud) {
		telling_all(b, NULL);
	}
	b->left = core == NULL ? 0 : unwritten(core);
	b->host.b = NULL;
	b->loud = false; /* A recorder's call after the end has no broadcaster to ask for lines. */
	b->closing = false;
	evrec_broadcaster_free(core);
}

/* Prints lines before the host's call ends, so that a finalizer that runs meanwhile does not print them as well. */
HOT void broadcaster_leave(struct broadcaster *b, lua_State *outer)
{
	if (b->loud && outer == NULL) {
		telling_due(b, b->host.L);
	}
	if (b->poller == POLLER_WANTED && outer == NULL && drive_ask(b->host.L, b)) {
		b->poller = POLLER_HOST;
	}
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

/* Keeps the counters for later calls of flush, shutdown and stats, and ends the broadcaster. */
static int broadcaster_close(lua_State *L)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (!broadcaster_is_open(b)) {
		return 0;
	}
	compat_getuservalue(L, 1);
	/* stats_push may run a finalizer that closes this broadcaster. */
	if (!stats_push(L, b) || !broadcaster_is_open(b)) {
		return 0;
	}
	lua_setfield(L, -2, "stats");
	if (b->host.L != NULL) {
		b->closing = true;
	} else {
		end(b);
	}
	return 0;
}

/* ---- methods ---- */

int broadcaster_closed(lua_State *L)
{
	const evrec_error closed = { EVREC_ECLOSED, "the broadcaster is closed" };

	return push_failure(L, &closed);
}

struct broadcaster *broadcaster_check(lua_State *L)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (!broadcaster_is_open(b)) {
		(void)broadcaster_closed(L);
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

int broadcaster_failure(lua_State *L, const char *function, const evrec_error *err)
{
	return err->code == EVREC_EINVALID ? options_refused(L, function, err) : push_failure(L, err);
}

static bool is_started(const evrec_broadcaster *b, size_t wanted)
{
	size_t number = wanted;

	return evrec_broadcaster_next_sink(b, &number) && number == wanted;
}

void broadcaster_forget_hooks(lua_State *L)
{
	struct broadcaster *b = lua_touserdata(L, 1);
	evrec_stats stats;

	if (b->host.b == NULL || b->host.L != NULL) {
		return;
	}
	evrec_broadcaster_get_stats(b->host.b, &stats);
	if (b->hooks == stats.sinks) {
		return;
	}
	b->hooks = 0;
	compat_getuservalue(L, 1);
	for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
		const struct hooks *hooks = box_test(L, -1, &hooks_type);

		if (hooks != NULL && is_started(b->host.b, hooks->number)) {
			b->hooks++;
		} else if (hooks != NULL) {
			lua_pushnil(L);
			lua_rawsetp(L, -4, hooks);
		}
	}
	lua_pop(L, 1);
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
	broadcaster_forget_hooks(L);
	lua_pushboolean(L, 1);
	return 1;
}

/* Pushes the counters; the ones that __close kept if it ended the broadcaster. */
static int push_stats(lua_State *L, const struct broadcaster *b)
{
	if (!stats_push(L, b)) {
		compat_getuservalue(L, 1);
		lua_getfield(L, -1, "stats");
		lua_remove(L, -2);
	}
	return 1;
}

int broadcaster_was_left(const struct broadcaster *b, evrec_error *err)
{
	if (b->left == 0) {
		return 0;
	}
	err->code = EVREC_ETIMEOUT;
	(void)snprintf(err->message, sizeof(err->message),
	               "%llu event%s %s not written yet when __close ended the broadcaster, which waits for nothing: "
	               "call shutdown before",
	               (unsigned long long)b->left, b->left == 1 ? "" : "s", b->left == 1 ? "was" : "were");
	return EVREC_ETIMEOUT;
}

typedef int flush_func(evrec_broadcaster *b, int64_t timeout, evrec_error *err);

/* Calls flush or shutdown of the core, with the timeout at stack index 2. */
static int wait_for_writes(lua_State *L, const char *function, flush_func *func)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);
	int64_t timeout = seconds_check(L, 2, function, "timeout", DEFAULT_TIMEOUT);
	evrec_error err = { 0 };
	lua_State *outer;
	int code = 0;

	if (b->host.b != NULL) {
		outer = broadcaster_enter(b, L);
		code = func(b->host.b, timeout, &err);
		if (b->loud && outer == NULL && func == evrec_broadcaster_shutdown) {
			telling_all(b, L);
		}
		broadcaster_leave(b, outer);
		broadcaster_forget_hooks(L);
	} else {
		code = broadcaster_was_left(b, &err);
	}
	if (code == EVREC_EINVALID) {
		return push_failure(L, &err);
	}
	lua_pushboolean(L, code == 0);
	(void)push_stats(L, b);
	if (code == 0) {
		return 2;
	}
	lua_pushstring(L, err.message);
	return 3;
}

static int broadcaster_flush(lua_State *L)
{
	return wait_for_writes(L, "broadcaster:flush", evrec_broadcaster_flush);
}

static int broadcaster_shutdown(lua_State *L)
{
	return wait_for_writes(L, "broadcaster:shutdown", evrec_broadcaster_shutdown);
}

static int broadcaster_stats(lua_State *L)
{
	return push_stats(L, box_check(L, 1, &broadcaster_type));
}

static const luaL_Reg methods[] = {
	{ "poll", broadcaster_poll },      { "flush", broadcaster_flush }, { "shutdown", broadcaster_shutdown },
	{ "close", broadcaster_shutdown }, { "stats", broadcaster_stats }, { NULL, NULL },
};
static const luaL_Reg metamethods[] = {
	{ "__gc", broadcaster_gc },
	{ "__close", broadcaster_close },
	{ NULL, NULL },
};

const struct box_type broadcaster_type = { NAME, methods, metamethods };
