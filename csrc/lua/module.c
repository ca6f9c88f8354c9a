/* dladdr, RTLD_NOLOAD */
#define _GNU_SOURCE

#include <dlfcn.h>

#include "lua/broadcaster.h"
#include "lua/clock.h"
#include "lua/correlator.h"
#include "lua/event.h"
#include "lua/explain.h"
#include "lua/recorder.h"
#include "lua/reference.h"
#include "lua/sink.h"
#include "lua/watch.h"

__attribute__((visibility("default"))) int luaopen_evrec_core(lua_State *L);

/* A thread of evrec's may outlive the Lua state: lua_close must not unload what it runs. */
static void stay_loaded(void)
{
	union {
		lua_CFunction function;
		void *address;
	} here = { luaopen_evrec_core };
	Dl_info info;

	if (dladdr(here.address, &info) != 0 && info.dli_fname != NULL) {
		/* Never closed: that is what it is for. Where evrec is a part of the program itself there is nothing to do. */
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
	}
}

static void set_function(lua_State *L, const char *name, lua_CFunction f)
{
	lua_pushcfunction(L, f);
	lua_setfield(L, -2, name);
}

/*
 * evrec.core, which lua/evrec/init.lua makes the public module of: constructors, `version`, `null` (what lua-cjson
 * decodes null to), and `broadcaster_methods`, to which methods written in Lua are added.
 */
int luaopen_evrec_core(lua_State *L)
{
	static const struct box_type *const types[] = {
		&reference_type,   &event_type, &clock_type, &correlator_type,
		&broadcaster_type, &watch_type, &sink_type,  &hooks_type,
	};
	size_t i;

	stay_loaded();
	box_open(L);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		box_define(L, types[i]);
	}
	recorder_define(L);
	lua_newtable(L);
	lua_pushliteral(L, EVREC_VERSION);
	lua_setfield(L, -2, "version");
	lua_pushlightuserdata(L, NULL);
	lua_setfield(L, -2, "null");
	box_push_methods(L, &broadcaster_type);
	lua_setfield(L, -2, "broadcaster_methods");
	reference_push_upvalues(L);
	lua_pushcclosure(L, reference_new, UP_REFERENCE_LAST);
	lua_setfield(L, -2, "reference");
	set_function(L, "event", event_new);
	set_function(L, "clock", clock_new_real);
	set_function(L, "fake_clock", clock_new_fake);
	set_function(L, "correlator", correlator_new);
	set_function(L, "broadcaster", broadcaster_new);
	set_function(L, "explain", broadcaster_explain);
	set_function(L, "sink_kubernetes", sink_new_kubernetes);
	set_function(L, "sink_file", sink_new_file);
	set_function(L, "sink_lua", sink_new_lua);
	return 1;
}
