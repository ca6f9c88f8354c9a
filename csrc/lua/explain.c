#include "lua/explain.h"

#include "lua/broadcaster.h"
#include "lua/reference.h"
#include "lua/stats.h"

static void set_str(lua_State *L, const char *name, evrec_str s)
{
	if (s.len != 0) {
		lua_pushlstring(L, s.data, s.len);
		lua_setfield(L, -2, name);
	}
}

static void set_word(lua_State *L, const char *name, const char *word)
{
	lua_pushstring(L, word);
	lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double number)
{
	lua_pushnumber(L, (lua_Number)number);
	lua_setfield(L, -2, name);
}

static void set_reference(lua_State *L, const evrec_reference *r)
{
	set_str(L, "kind", r->kind);
	set_str(L, "apiVersion", r->api_version);
	set_str(L, "namespace", r->ns);
	set_str(L, "name", r->name);
	set_str(L, "uid", r->uid);
}

/* What both keys begin with where no callback chose them. */
static void push_parts(lua_State *L, const evrec_suppressed *what)
{
	lua_createtable(L, 0, 12);
	set_str(L, "component", what->component);
	set_str(L, "host", what->host);
	set_reference(L, &what->regarding);
	set_str(L, "type", what->type);
}

static void set_spam_key(lua_State *L, const evrec_suppressed *what)
{
	if (what->spam_kind == EVREC_KEY_CUSTOM) {
		lua_pushlstring(L, what->spam_key.data, what->spam_key.len);
	} else if (what->spam_kind == EVREC_KEY_DEFAULT) {
		push_parts(L, what);
	} else {
		return;
	}
	lua_setfield(L, -2, "spam_key");
}

static void set_aggregate_key(lua_State *L, const evrec_suppressed *what)
{
	if (what->aggregate_kind == EVREC_KEY_CUSTOM) {
		lua_pushlstring(L, what->aggregate_key.data, what->aggregate_key.len);
	} else if (what->aggregate_kind == EVREC_KEY_DEFAULT) {
		push_parts(L, what);
		set_str(L, "reason", what->reason);
		set_str(L, "reportingComponent", what->controller);
		set_str(L, "reportingInstance", what->instance);
	} else {
		return;
	}
	lua_setfield(L, -2, "aggregate_key");
}

static double seconds(int64_t ns)
{
	return (double)ns / (double)EVREC_SECOND;
}

/* Appends to the array at the top of the stack. */
static bool append(void *ctx, const evrec_suppressed *what)
{
	lua_State *L = ctx;

	lua_createtable(L, 0, 14);
	set_word(L, "stage", evrec_stage_name(what->stage));
	if (what->stage == EVREC_STAGE_DROPPED) {
		set_word(L, "cause", evrec_cause_name(what->cause));
	}
	lua_createtable(L, 0, 5);
	set_reference(L, &what->regarding);
	lua_setfield(L, -2, "object");
	set_str(L, "type", what->type);
	set_str(L, "reason", what->reason);
	set_str(L, "message", what->message);
	stats_set(L, "count", what->count);
	set_number(L, "first", seconds(what->first));
	set_number(L, "last", seconds(what->last));
	set_aggregate_key(L, what);
	set_spam_key(L, what);
	set_number(L, "tokens", what->tokens);
	if (what->next_token != INT64_MAX) {
		set_number(L, "next_token_in", seconds(what->next_token));
	}
	lua_rawseti(L, -2, (int)lua_rawlen(L, -2) + 1);
	return true;
}

int broadcaster_explain(lua_State *L)
{
	struct broadcaster *b = broadcaster_check(L);
	const evrec_reference *object = NULL;
	evrec_sink_stats sink;
	size_t i;

	if (b == NULL) {
		return 3;
	}
	if (!lua_isnoneornil(L, 2)) {
		object = evrec_ref_fields(*(evrec_ref **)box_check(L, 2, &reference_type));
	}
	luaL_checkstack(L, LUA_MINSTACK, "explain");
	lua_newtable(L);
	for (i = 0; evrec_broadcaster_get_sink_stats(b->host.b, i, &sink); i++) {
		lua_createtable(L, 0, 2);
		set_word(L, "name", sink.name);
		lua_newtable(L);
		evrec_broadcaster_explain(b->host.b, i, object, append, L);
		lua_setfield(L, -2, "suppressed");
		lua_rawseti(L, -2, (int)i + 1);
	}
	return 1;
}

static void set_text(lua_State *L, const char *name, evrec_str s)
{
	lua_pushlstring(L, s.len == 0 ? "" : s.data, s.len);
	lua_setfield(L, -2, name);
}

static bool append_rate_limited(void *ctx, const evrec_suppressed *what)
{
	lua_State *L = ctx;

	if (what->stage == EVREC_STAGE_RATE_LIMITED) {
		lua_createtable(L, 0, 6);
		set_text(L, "kind", what->regarding.kind);
		set_text(L, "namespace", what->regarding.ns);
		set_text(L, "name", what->regarding.name);
		set_text(L, "reason", what->reason);
		stats_set(L, "count", what->count);
		set_word(L, "why", evrec_stage_name(what->stage));
		lua_rawseti(L, -2, (int)lua_rawlen(L, -2) + 1);
	}
	return what->stage <= EVREC_STAGE_RATE_LIMITED;
}

void explain_push_rate_limited(lua_State *L, const evrec_broadcaster *b, size_t i)
{
	lua_newtable(L);
	evrec_broadcaster_explain(b, i, NULL, append_rate_limited, L);
}
