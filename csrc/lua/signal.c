/* dladdr */
#define _GNU_SOURCE

#include "lua/signal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lua/colon.h"
#include "lua/seconds.h"

#define NAME "evrec.on_signal"
#define SIGNALS_MAX 16
#define MAX_TIMEOUT (86400 * EVREC_SECOND)
#define DEFAULT_TIMEOUT (2 * EVREC_SECOND)

struct request {
	int signals[SIGNALS_MAX];
	size_t len;
	int64_t timeout;
};

/* ---- the table of signals ---- */

/* The number of the signal whose name is at the top of the stack, with or without "SIG". Raises if it is none. */
static int signal_number(lua_State *L)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },
		{ "TERM", SIGTERM }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
	};
	const bool is_string = lua_type(L, -1) == LUA_TSTRING;
	const char *name = is_string ? lua_tostring(L, -1) : "";

	if (is_string && strlen(name) != lua_rawlen(L, -1)) {
		return luaL_error(L, NAME ": the name of a signal has a NUL byte");
	}
	if (strncmp(name, "SIG", 3) == 0) {
		name += 3;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, name) == 0) {
			return known[i].number;
		}
	}
	return luaL_error(L, "%s: expected \"TERM\", \"INT\", \"HUP\", \"QUIT\", \"USR1\" or \"USR2\", got %s", NAME,
	                  is_string ? lua_pushfstring(L, "\"%s\"", lua_tostring(L, -1)) : luaL_typename(L, -1));
}

static void read_list(lua_State *L, struct request *request)
{
	const size_t len = lua_rawlen(L, 1);

	if (len == 0 || len > SIGNALS_MAX) {
		luaL_error(L, "%s: expected 1 to %d names of signals, got %d", NAME, SIGNALS_MAX,
		           (int)(len > INT16_MAX ? INT16_MAX : len));
	}
	for (request->len = 0; request->len < len; request->len++) {
		lua_rawgeti(L, 1, (int)request->len + 1);
		request->signals[request->len] = signal_number(L);
		lua_pop(L, 1);
	}
}

static void check_keys(lua_State *L, size_t len)
{
	for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
		const double number = lua_type(L, -2) == LUA_TNUMBER ? (double)lua_tonumber(L, -2) : 0;

		if (number >= 1 && number <= (double)len) {
			continue;
		}
		if (lua_type(L, -2) != LUA_TSTRING) {
			luaL_error(L, "%s: unknown option of type %s", NAME, luaL_typename(L, -2));
		}
		if (lua_rawlen(L, -2) != strlen("timeout") || strcmp(lua_tostring(L, -2), "timeout") != 0) {
			luaL_error(L, "%s: unknown option '%s'", NAME, lua_tostring(L, -2));
		}
	}
}

static void read_request(lua_State *L, struct request *request)
{
	if (!lua_istable(L, 1)) {
		luaL_error(L, "%s: expected a table of signals, got %s", NAME, luaL_typename(L, 1));
	}
	colon_refuse(L, 1, NAME);
	read_list(L, request);
	check_keys(L, request->len);
	lua_pushliteral(L, "timeout");
	lua_rawget(L, 1);
	request->timeout = seconds_check(L, lua_gettop(L), NAME, "timeout", DEFAULT_TIMEOUT);
	if (request->timeout > MAX_TIMEOUT) {
		luaL_error(L, "%s: 'timeout': expected at most 86400 seconds, got %s", NAME, number_describe(L));
	}
}

/* ---- the interpreter's own handler ---- */

/* "lua", "lua5.4", "luajit-2.1", in any folder. */
static bool is_interpreter(const char *program)
{
	const char *slash = strrchr(program, '/'), *name = slash == NULL ? program : slash + 1;

	if (strncmp(name, "lua", 3) != 0) {
		return false;
	}
	name += strncmp(name, "luajit", 6) == 0 ? 6 : 3;
	return !isalpha((unsigned char)*name) && strstr(name, ".so") == NULL;
}

/*
 * While a script runs, the programs lua and luajit have a handler of SIGINT, which interrupts the script by an error. No
 * script has asked for it.
 */
static bool has_interpreters_handler(int signal)
{
	struct sigaction action;
	union {
		void (*function)(int);
		void *address;
	} handler;
	Dl_info info;

	if (sigaction(signal, NULL, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
	    action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
		return false;
	}
	handler.function = action.sa_handler;
	return dladdr(handler.address, &info) != 0 && info.dli_fname != NULL && is_interpreter(info.dli_fname);
}

/* Removes the interpreter's handler first, and restores it if the core refuses. */
static int watch(const struct request *request, evrec_error *err)
{
	const struct sigaction none = { .sa_handler = SIG_DFL };
	struct sigaction interpreters;
	bool removed = false;
	int code;

	for (size_t i = 0; i < request->len && !removed; i++) {
		if (request->signals[i] == SIGINT && has_interpreters_handler(SIGINT)) {
			removed = sigaction(SIGINT, &none, &interpreters) == 0;
		}
	}
	code = evrec_on_signal(request->signals, request->len, request->timeout, err);
	if (code != 0 && removed) {
		(void)sigaction(SIGINT, &interpreters, NULL);
	}
	return code;
}

int signal_watch(lua_State *L)
{
	struct request request;
	evrec_error err;

	lua_settop(L, 2);
	read_request(L, &request);
	if (!lua_isnil(L, 2)) {
		err.code = EVREC_EINVALID;
		(void)snprintf(err.message, sizeof(err.message), "%s handles its signals itself", lua_tostring(L, 2));
		return push_failure(L, &err);
	}
	if (watch(&request, &err) != 0) {
		return push_failure(L, &err);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* ---- waiting ---- */

#define MAX_WAIT (3600 * EVREC_SECOND)

/* Linux keeps a blocked signal pending even if the process ignores it, as background processes of a script do. */
static void add_unless_ignored(sigset_t *set, int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
		(void)sigaddset(set, signal);
	}
}

int signal_wait(lua_State *L)
{
	const int64_t wanted = seconds_check(L, 1, "wait_for_signal", "seconds", 0);
	const int64_t ns = wanted < MAX_WAIT ? wanted : MAX_WAIT;
	const struct timespec timeout = { (time_t)(ns / EVREC_SECOND), (long)(ns % EVREC_SECOND) };
	sigset_t both;
	int signal;

	(void)sigemptyset(&both);
	add_unless_ignored(&both, SIGTERM);
	add_unless_ignored(&both, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &both, NULL);
	signal = sigtimedwait(&both, NULL, &timeout);
	if (signal < 0) {
		return 0; /* also if a handler of another signal has run */
	}
	lua_pushstring(L, signal == SIGTERM ? "TERM" : "INT");
	return 1;
}
