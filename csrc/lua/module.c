/* dladdr, RTLD_NOLOAD */
#define _GNU_SOURCE

#include <dlfcn.h>

#include "lua/broadcaster.h"
#include "lua/clock.h"
#include "lua/colon.h"
#include "lua/correlator.h"
#include "lua/drive.h"
#include "lua/event.h"
#include "lua/explain.h"
#include "lua/polling.h"
#include "lua/prepared.h"
#include "lua/read.h"
#include "lua/recorder.h"
#include "lua/reference.h"
#include "lua/replay.h"
#include "lua/signal.h"
#include "lua/sink.h"
#include "lua/suggest.h"
#include "lua/telling.h"
#include "lua/terminal.h"
#include "lua/watch.h"

__attribute__((visibility("default"))) int luaopen_evrec_core(lua_State *L);

/* Keeps lua_close from unloading this library, because a thread that runs its code may outlive the Lua state. */
static void stay_loaded(void)
{
	union {
		lua_CFunction function;
		void *address;
	} here = { luaopen_evrec_core };
	Dl_info info;

	if (dladdr(here.address, &info) != 0 && info.dli_fname != NULL) {
		/*
		 * The handle is never closed, so the library stays loaded. If evrec is a part of the program itself,
		 * nothing can unload it, and the result does not matter.
		 */
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
	}
}

static void set_function(lua_State *L, const char *name, lua_CFunction f)
{
	lua_pushcfunction(L, f);
	lua_setfield(L, -2, name);
}

/* Adds the methods of a broadcaster that need other types. The function evrec.reference is at the top of the stack. */
static void add_broadcaster_methods(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "start_recording_to_sink", watch_new_sink },
		{ "start_event_watcher", watch_new_function },
		{ "watch", watch_new_queue },
		{ "start_trace", watch_new_trace },
		{ "new_recorder", recorder_new },
		{ NULL, NULL },
	};

	box_push_methods(L, &broadcaster_type);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -2);
	explain_push(L);
	lua_setfield(L, -2, "explain");
	lua_pop(L, 1);
}

/* Lua: core.is_broadcaster(value) -> boolean */
static int is_broadcaster(lua_State *L)
{
	luaL_checkany(L, 1);
	lua_pushboolean(L, box_test(L, 1, &broadcaster_type) != NULL);
	return 1;
}

/*
 * Opens evrec.core, of which lua/evrec/init.lua makes the public module: constructors, `version`, `null` (the value
 * that lua-cjson decodes null to), and `broadcaster_methods` and `source_methods`, tables to which init.lua adds methods
 * written in Lua.
 */
int luaopen_evrec_core(lua_State *L)
{
	static const struct box_type *const types[] = {
		&reference_type,   &event_type,  &event_owner_type, &clock_type, &correlator_type,
		&broadcaster_type, &watch_type,  &sink_type,        &hooks_type, &explanation_type,
		&source_type,      &reader_type, &replay_type,
	};
	size_t i;

	stay_loaded();
	box_open(L);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		box_define(L, types[i]);
	}
	callback_open(L);
	recorder_define(L);
	prepared_define(L);
	lua_newtable(L);
	lua_pushliteral(L, EVREC_VERSION);
	lua_setfield(L, -2, "version");
	lua_pushlightuserdata(L, NULL);
	lua_setfield(L, -2, "null");
	box_push_methods(L, &broadcaster_type);
	lua_setfield(L, -2, "broadcaster_methods");
	box_push_methods(L, &source_type);
	lua_setfield(L, -2, "source_methods");
	reference_push_function(L);
	add_broadcaster_methods(L);
	lua_setfield(L, -2, "reference");
	set_function(L, "event", event_new);
	set_function(L, "event_time", event_time);
	set_function(L, "clock", clock_new_real);
	set_function(L, "fake_clock", clock_new_fake);
	set_function(L, "correlator", correlator_new);
	set_function(L, "replay", replay_new);
	set_function(L, "broadcaster", broadcaster_new);
	set_function(L, "on_signal", signal_watch);
	set_function(L, "wait_for_signal", signal_wait);
	set_function(L, "sink_kubernetes", sink_new_kubernetes);
	set_function(L, "sink_file", sink_new_file);
	set_function(L, "sink_store", sink_new_store);
	set_function(L, "sink_otlp", sink_new_otlp);
	set_function(L, "sink_lua", sink_new_lua);
	set_function(L, "source_lines", source_new_lines);
	set_function(L, "source_store", source_new_store);
	set_function(L, "source_cluster", source_new_cluster);
	set_function(L, "source_open", source_open);
	set_function(L, "source_suppressions", source_open_suppressions);
	set_function(L, "source_occurrences", source_open_occurrences);
	set_function(L, "cluster_get", source_get);
	set_function(L, "parse_time", read_parse_time);
	set_function(L, "set_modules", colon_set_modules);
	set_function(L, "set_logger", telling_set_logger);
	set_function(L, "set_host", drive_set_host);
	set_function(L, "let_go", polling_let_go);
	set_function(L, "may_own", polling_may_own);
	set_function(L, "poll_delay", polling_poll_delay);
	set_function(L, "suggest", suggest_call);
	set_function(L, "is_terminal", terminal_is);
	set_function(L, "show_progress", terminal_show_progress);
	set_function(L, "hold_streams", terminal_hold_streams);
	set_function(L, "end_by_signals", terminal_end_by_signals);
	set_function(L, "next_line", terminal_next_line);
	set_function(L, "file_at", terminal_file_at);
	set_function(L, "monotonic", terminal_monotonic);
	set_function(L, "pause", terminal_pause);
	set_function(L, "is_broadcaster", is_broadcaster);
	return 1;
}
