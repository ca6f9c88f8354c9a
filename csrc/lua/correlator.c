#include "lua/correlator.h"

#include "lua/clock.h"
#include "lua/event.h"
#include "lua/table.h"

#define NAME "evrec.correlator"

/* The event of a correlation until its userdata is made. Lives as long as the call of correlator_correlate. */
struct loan {
	const evrec_fields *fields; /* the core's, or those of `copy`; NULL: there was no memory for the copy */
	evrec_event *copy;          /* owned; NULL while the fields are the core's */
};

struct correlator {
	struct hooks hooks; /* first, so that callbacks get the address of the userdata */
	struct host host;
	evrec_correlator *correlator;
	evrec_clock *clock;
	struct loan *loan; /* the one whose fields are the core's; NULL: there is none */
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
	host_begin(&c->host, L);
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
 * Reads the event at stack index 2. Its object must have a kind, which is a part of every key. False, with *err set: it
 * is no such event.
 */
static bool read_event(lua_State *L, evrec_fields *event, evrec_error *err)
{
	lua_settop(L, 2);
	if (!event_at(L, 2, event, err)) {
		return false;
	}
	if (event->regarding.kind.len == 0) {
		*err = (evrec_error){ EVREC_EINVALID, "involvedObject.kind: missing" };
		return false;
	}
	return true;
}

static int push_core_failure(lua_State *L, int code)
{
	evrec_error err = { EVREC_EINVALID, "called from inside a callback of this correlator" };

	if (code != EVREC_EINVALID) {
		err = (evrec_error){ code, "no memory" };
	}
	return push_failure(L, &err);
}

/*
 * Copies the event that the core lent. Must be called before each call of the core, which may change or free that
 * event: making the event's userdata may run a finalizer of the script, which may use the correlator. So the core lends
 * one event at most.
 */
static void end_loan(struct correlator *c)
{
	struct loan *loan = c->loan;

	if (loan != NULL) {
		loan->copy = evrec_event_new(loan->fields);
		loan->fields = loan->copy == NULL ? NULL : evrec_event_fields(loan->copy);
		c->loan = NULL;
	}
}

/* Lua: (struct loan *) -> userdata for the event; nil if the fields are NULL */
static int allocate(lua_State *L)
{
	const struct loan *loan = lua_touserdata(L, 1);

	if (loan->fields == NULL) {
		return 0; /* lua_pcall ran a finalizer before it called this function */
	}
	(void)event_allocate(L, loan->fields);
	return 1;
}

/* Pushes the event of a correlation. The function `allocate` and its argument, `loan`, are at the top of the stack. */
static void push_event(lua_State *L, struct correlator *c, struct loan *loan)
{
	bool copied;
	int status;

	c->loan = loan;
	status = lua_pcall(L, 1, 1, 0);
	c->loan = NULL;
	copied = status == 0 && loan->fields != NULL;
	if (copied) {
		/* A copy that end_loan made meanwhile needs as much room as the core's fields. */
		event_complete(L, lua_touserdata(L, -1), loan->fields);
	}
	evrec_event_release(loan->copy);
	if (status != 0) {
		lua_error(L);
	}
	if (!copied) {
		luaL_error(L, NAME ": no memory");
	}
}

static char *long_patch(const void *event, size_t *len)
{
	return evrec_fields_patch(event, len);
}

/* Most patches are shorter, and are written without memory of their own. */
#define PATCH_SIZE 2048

/* Pushes the patch of the event at the top of the stack. */
static void push_patch(lua_State *L)
{
	char patch[PATCH_SIZE];
	evrec_fields event;
	size_t len;

	evrec_packed_read(lua_touserdata(L, -1), &event);
	len = evrec_fields_write_patch(&event, patch, sizeof(patch));
	if (len != 0) {
		lua_pushlstring(L, patch, len);
	} else {
		box_push_text(L, long_patch, &event);
	}
}

/* Lua: correlator:correlate(event) -> { event =, patch =, skip =, why = }; nil, message, name */
static int correlator_correlate(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	evrec_correlation result;
	evrec_fields event;
	struct loan loan = { &result.event, NULL };
	lua_State *outer;
	evrec_error err;
	int code;

	if (!read_event(L, &event, &err)) {
		return push_failure(L, &err);
	}
	/* All but this runs before the core is called, as it may run finalizers. */
	lua_createtable(L, 0, 4);
	lua_pushcfunction(L, allocate);
	lua_pushlightuserdata(L, &loan);
	end_loan(c);
	outer = host_enter(&c->host, L);
	code = evrec_correlator_correlate(c->correlator, &event, evrec_clock_now(c->clock), &result);
	host_leave(&c->host, outer);
	if (code != 0) {
		return push_core_failure(L, code);
	}
	push_event(L, c, &loan);
	if (result.patch) {
		push_patch(L);
		lua_setfield(L, -3, "patch");
	}
	lua_setfield(L, -2, "event");
	lua_pushboolean(L, result.skip);
	lua_setfield(L, -2, "skip");
	lua_pushstring(L, evrec_why_name(result.why));
	lua_setfield(L, -2, "why");
	return 1;
}

static int correlator_update_state(lua_State *L)
{
	struct correlator *c = check_correlator(L);
	evrec_fields event;
	evrec_error err;
	int code;

	if (!read_event(L, &event, &err)) {
		return push_failure(L, &err);
	}
	end_loan(c);
	code = evrec_correlator_update_state(c->correlator, &event);
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

	end_loan(c);
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
