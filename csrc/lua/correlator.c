#include "lua/correlator.h"

#include "lua/clock.h"
#include "lua/event.h"
#include "lua/stats.h"

#define NAME "evrec.correlator"

struct correlator {
	struct hooks hooks; /* first: the address that callbacks get */
	struct host host;
	evrec_correlator *correlator;
	evrec_clock *clock;
};

#define AT(member) offsetof(evrec_correlator_options, member)

const struct option correlator_rows[] = {
	{ "lru_cache_size", OPTION_SIZE, AT(lru_cache_size), 1, 1 << 24, NULL, false },
	{ "burst_size", OPTION_UNSIGNED, AT(burst_size), 1, 1e9, NULL, false },
	{ "qps", OPTION_NUMBER, AT(qps), 0, 1e9, NULL, false },
	{ "max_events", OPTION_UNSIGNED, AT(max_events), 1, 1e9, NULL, false },
	{ "max_interval_in_seconds", OPTION_DURATION, AT(max_interval), 0, 1e9, NULL, false },
	{ "key_func", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "message_func", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "spam_key_func", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

struct settings {
	evrec_correlator_options options;
	evrec_clock *clock;
};

static const struct option rows[] = {
	{ "correlator", OPTION_ROWS, offsetof(struct settings, options), 0, 0, correlator_rows, false },
	{ "clock", OPTION_CLOCK, offsetof(struct settings, clock), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int correlator_new(lua_State *L)
{
	struct settings settings = { .clock = evrec_clock_real() };
	struct correlator *c;
	evrec_error err;

	lua_settop(L, 1);
	evrec_correlator_options_init(&settings.options);
	lua_newtable(L);
	options_read(L, 1, NAME, rows, &settings, 2);
	c = box_new(L, &correlator_type, sizeof(*c));
	c->hooks.host = &c->host;
	c->clock = evrec_clock_retain(settings.clock);
	hooks_set(L, 2, &c->hooks, &settings.options);
	anchor_set(L);
	lua_pushvalue(L, 2);
	compat_setuservalue(L, -2);
	c->correlator = evrec_correlator_new(&settings.options, &err);
	return c->correlator != NULL ? 1 : options_refused(L, NAME, &err);
}

static struct correlator *check_correlator(lua_State *L)
{
	struct correlator *c = box_check(L, 1, &correlator_type);

	if (c->correlator == NULL) {
		luaL_error(L, NAME ": was collected");
	}
	return c;
}

/* The event at stack index 2. It needs what tells objects apart (semantics 1). */
static const evrec_fields *check_event(lua_State *L, evrec_error *err)
{
	const evrec_fields *fields;

	lua_settop(L, 2);
	fields = event_at(L, 2, err);
	if (fields != NULL && fields->regarding.kind.len == 0) {
		*err = (evrec_error){ EVREC_EINVALID, "involvedObject.kind: missing" };
		return NULL;
	}
	return fields;
}

static int push_core_failure(lua_State *L, int code)
{
	evrec_error err = { EVREC_EINVALID, "called from inside a callback of this correlator" };

	if (code != EVREC_EINVALID) {
		err = (evrec_error){ code, "no memory" };
	}
	return push_failure(L, &err);
}

static char *patch_json(const void *fields, size_t *len)
{
	return evrec_fields_patch(fields, len);
}

/* A plain table: { event =, patch =, skip =, why = }. */
static void push_result(lua_State *L, const evrec_correlation *result)
{
	lua_createtable(L, 0, 4);
	event_push_copy(L, &result->event);
	lua_setfield(L, -2, "event");
	if (result->patch) {
		box_push_text(L, patch_json, &result->event);
		lua_setfield(L, -2, "patch");
	}
	lua_pushboolean(L, result->skip);
	lua_setfield(L, -2, "skip");
	lua_pushstring(L, evrec_why_name(result->why));
	lua_setfield(L, -2, "why");
}

static int correlator_correlate(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	const evrec_fields *event;
	evrec_correlation result;
	lua_State *outer;
	evrec_error err;
	int code;

	event = check_event(L, &err);
	if (event == NULL) {
		return push_failure(L, &err);
	}
	outer = host_enter(&c->host, L);
	code = evrec_correlator_correlate(c->correlator, event, evrec_clock_now(c->clock), &result);
	host_leave(&c->host, outer);
	if (code != 0) {
		return push_core_failure(L, code);
	}
	push_result(L, &result);
	return 1;
}

static int correlator_update_state(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	const evrec_fields *event;
	evrec_error err;
	int code;

	event = check_event(L, &err);
	if (event == NULL) {
		return push_failure(L, &err);
	}
	code = evrec_correlator_update_state(c->correlator, event);
	if (code != 0) {
		return push_core_failure(L, code);
	}
	lua_pushboolean(L, 1);
	return 1;
}

void correlator_push_stats(lua_State *L, const evrec_correlator_stats *stats)
{
	int why;

	lua_newtable(L);
	stats_set(L, "correlated", stats->correlated);
	for (why = 0; why < 4; why++) {
		stats_set(L, evrec_why_name((enum evrec_why)why), stats->why[why]);
	}
	stats_set(L, "callback_errors", stats->callback_errors);
	stats_set(L, "aggregates", stats->aggregates);
	stats_set(L, "observed", stats->observed);
	stats_set(L, "rate_limits", stats->rate_limits);
}

static int correlator_stats(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	evrec_correlator_stats stats;

	evrec_correlator_get_stats(c->correlator, &stats);
	correlator_push_stats(L, &stats);
	return 1;
}

static int correlator_gc(lua_State *L)
{
	struct correlator *c = lua_touserdata(L, 1);

	evrec_correlator_free(c->correlator);
	c->correlator = NULL;
	evrec_clock_release(c->clock);
	c->clock = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "correlate", correlator_correlate },
	{ "update_state", correlator_update_state },
	{ "stats", correlator_stats },
	{ NULL, NULL },
};
static const luaL_Reg metamethods[] = { { "__gc", correlator_gc }, { NULL, NULL } };

const struct box_type correlator_type = { NAME, methods, metamethods };
