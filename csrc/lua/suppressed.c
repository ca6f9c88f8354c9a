#include "lua/suppressed.h"

#include "lua/table.h"

static void set_reference(lua_State *L, const evrec_reference *r)
{
	table_set_optional(L, "kind", r->kind);
	table_set_optional(L, "apiVersion", r->api_version);
	table_set_optional(L, "namespace", r->ns);
	table_set_optional(L, "name", r->name);
	table_set_optional(L, "uid", r->uid);
}

/* Pushes the fields that are in both default keys. */
static void push_key_parts(lua_State *L, const evrec_suppressed *s)
{
	lua_createtable(L, 0, 12);
	table_set_optional(L, "component", s->component);
	table_set_optional(L, "host", s->host);
	set_reference(L, &s->regarding);
	table_set_optional(L, "type", s->type);
}

static void set_spam_key(lua_State *L, const evrec_suppressed *s)
{
	if (s->spam_kind == EVREC_KEY_CUSTOM) {
		table_set_text(L, "spam_key", s->spam_key);
	} else if (s->spam_kind == EVREC_KEY_DEFAULT) {
		push_key_parts(L, s);
		lua_setfield(L, -2, "spam_key");
	}
}

static void set_aggregate_key(lua_State *L, const evrec_suppressed *s)
{
	if (s->aggregate_kind == EVREC_KEY_CUSTOM) {
		table_set_text(L, "aggregate_key", s->aggregate_key);
	} else if (s->aggregate_kind == EVREC_KEY_DEFAULT) {
		push_key_parts(L, s);
		table_set_optional(L, "reason", s->reason);
		table_set_optional(L, "reportingComponent", s->controller);
		table_set_optional(L, "reportingInstance", s->instance);
		lua_setfield(L, -2, "aggregate_key");
	}
}

/* The word that on_drop gets for such an event; "aggregated" for one that it does not get. */
static const char *why(const evrec_suppressed *s)
{
	return s->stage == EVREC_STAGE_DROPPED ? evrec_cause_name(s->cause) : evrec_stage_name(s->stage);
}

void suppressed_push_explained(lua_State *L, const evrec_suppressed *s)
{
	lua_createtable(L, 0, 15);
	table_set_word(L, "why", why(s));
	table_set_word(L, "stage", evrec_stage_name(s->stage));
	if (s->stage == EVREC_STAGE_DROPPED) {
		table_set_word(L, "cause", evrec_cause_name(s->cause));
	}
	lua_createtable(L, 0, 5);
	set_reference(L, &s->regarding);
	lua_setfield(L, -2, "object");
	table_set_optional(L, "type", s->type);
	table_set_optional(L, "reason", s->reason);
	table_set_optional(L, "message", s->message);
	table_set_count(L, "count", s->count);
	table_set_seconds(L, "first", s->first);
	table_set_seconds(L, "last", s->last);
	set_aggregate_key(L, s);
	/* No token was missing where an event was merged, or its series ended. */
	if (s->stage == EVREC_STAGE_MERGED || s->stage == EVREC_STAGE_FINISHED) {
		return;
	}
	set_spam_key(L, s);
	table_set_number(L, "tokens", s->tokens);
	/* No next token will ever come if qps is 0. */
	if (s->next_token != INT64_MAX) {
		table_set_seconds(L, "next_token_in", s->next_token);
	}
}

void suppressed_push_summary(lua_State *L, const evrec_suppressed *s)
{
	lua_createtable(L, 0, 6);
	table_set_text(L, "kind", s->regarding.kind);
	table_set_text(L, "namespace", s->regarding.ns);
	table_set_text(L, "name", s->regarding.name);
	table_set_text(L, "reason", s->reason);
	table_set_count(L, "count", s->count);
	table_set_word(L, "why", why(s));
}
