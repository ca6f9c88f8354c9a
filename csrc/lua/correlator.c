#include "lua/correlator.h"

#include "lua/clock.h"
#include "lua/event.h"
#include "lua/table.h"

#define NAME "evrec.correlator"

struct correlator {
	struct hooks hooks; /* first, so that callbacks get the address of the userdata */
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

/*
 * Returns the event at stack index 2. Its object must have a kind, which is a part of every key. NULL, with *err set:
 * it is no such event.
 */
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

/* A correlation in memory that no later call of the correlator changes. */
struct result {
	evrec_event **event;
	char **patch; /* the slot holds NULL: no patch */
	size_t patch_len;
	bool skip;
	enum evrec_why why;
};

/* Copies the correlation, which borrows memory of the correlator until its next call. False: no memory. */
static bool take_result(struct result *r, const evrec_correlation *correlation)
{
	*r->event = evrec_event_new(&correlation->event);
	r->patch_len = 0;
	if (correlation->patch) {
		*r->patch = evrec_fields_patch(&correlation->event, &r->patch_len);
	}
	r->skip = correlation->skip;
	r->why = correlation->why;
	return *r->event != NULL && (*r->patch != NULL || !correlation->patch);
}

/* Pushes { event =, patch =, skip =, why = }. The userdata of the event is at stack index `event`. */
static void push_result(lua_State *L, const struct result *r, int event)
{
	lua_createtable(L, 0, 4);
	lua_pushvalue(L, event);
	lua_setfield(L, -2, "event");
	if (*r->patch != NULL) {
		lua_pushlstring(L, *r->patch, r->patch_len);
		lua_setfield(L, -2, "patch");
		evrec_free(*r->patch);
		*r->patch = NULL;
	}
	lua_pushboolean(L, r->skip);
	lua_setfield(L, -2, "skip");
	lua_pushstring(L, evrec_why_name(r->why));
	lua_setfield(L, -2, "why");
}

/*
 * Makes the userdata that will own the result before it correlates: making them may run a finalizer, which may
 * correlate another event and so change this correlation.
 */
static int correlator_correlate(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	const evrec_fields *event;
	evrec_correlation correlation;
	struct result result;
	lua_State *outer;
	evrec_error err;
	int code, index;

	event = check_event(L, &err);
	if (event == NULL) {
		return push_failure(L, &err);
	}
	result.event = event_push(L);
	index = lua_gettop(L);
	result.patch = box_push_owner(L);
	outer = host_enter(&c->host, L);
	code = evrec_correlator_correlate(c->correlator, event, evrec_clock_now(c->clock), &correlation);
	host_leave(&c->host, outer);
	if (code != 0) {
		return push_core_failure(L, code);
	}
	if (!take_result(&result, &correlation)) {
		return luaL_error(L, NAME ": no memory");
	}
	push_result(L, &result, index);
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
	table_set_count(L, "correlated", stats->correlated);
	for (why = 0; why < 4; why++) {
		table_set_count(L, evrec_why_name((enum evrec_why)why), stats->why[why]);
	}
	table_set_count(L, "callback_errors", stats->callback_errors);
	table_set_count(L, "aggregates", stats->aggregates);
	table_set_count(L, "observed", stats->observed);
	table_set_count(L, "buckets", stats->buckets);
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
