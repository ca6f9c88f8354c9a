#include "lua/replay.h"

#include "evrec_read.h"
#include "lua/colon.h"
#include "lua/correlator.h"
#include "lua/event.h"
#include "lua/options.h"
#include "lua/seconds.h"
#include "lua/table.h"

#define NAME "evrec.replay"

struct replay {
	evrec_replay *replay;
	size_t variants;
	bool finished;
};

/* ---- variants ---- */

#define AT(member) offsetof(evrec_replay_variant, member)

static const struct option correlate_words[] = {
	{ "record", OPTION_VALUE, EVREC_CORRELATE_RECORD, 0, 0, NULL, false },
	{ "series", OPTION_VALUE, EVREC_CORRELATE_SERIES, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

struct settings {
	evrec_replay_variant variant;
	int correlate;
};

static const struct option rows[] = {
	{ "lru_cache_size", OPTION_SIZE, AT(correlator.lru_cache_size), 1, 1 << 24, NULL, false },
	{ "burst_size", OPTION_UNSIGNED, AT(correlator.burst_size), 1, 1e9, NULL, false },
	{ "qps", OPTION_NUMBER, AT(correlator.qps), 0, 1e9, NULL, false },
	{ "max_events", OPTION_UNSIGNED, AT(correlator.max_events), 1, 1e9, NULL, false },
	{ "max_interval_in_seconds", OPTION_DURATION, AT(correlator.max_interval), 0, 1e9, NULL, false },
	{ "spam_key", OPTION_STRING, AT(spam_key), 0, 0, NULL, false },
	{ "correlate", OPTION_WORD, offsetof(struct settings, correlate), 0, 0, correlate_words, false },
	{ "refresh_interval", OPTION_DURATION, AT(series.refresh_interval), 1, 1e9, NULL, false },
	{ "finish_time", OPTION_DURATION, AT(series.finish_time), 1, 1e9, NULL, false },
	{ "max_series", OPTION_SIZE, AT(series.max_series), 1, 1 << 24, NULL, false },
	{ "note_in_key", OPTION_BOOLEAN, AT(series.note_in_key), 0, 0, NULL, false },
	{ "rate_limit", OPTION_BOOLEAN, AT(series.rate_limit), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

/* Leaves the copy of the options, from which the variant borrows, on the stack. */
static void read_variant(lua_State *L, int i, evrec_replay_variant *variant)
{
	struct settings settings = { .correlate = EVREC_CORRELATE_RECORD };

	evrec_replay_variant_init(&settings.variant);
	luaL_checkstack(L, 8, NAME);
	lua_rawgeti(L, 1, i);
	options_read(L, lua_gettop(L), NAME, rows, &settings, 0);
	*variant = settings.variant;
	variant->by_series = settings.correlate == EVREC_CORRELATE_SERIES;
}

/* Refuses options beside the list, which would be ignored: the options of a variant are in a table of the list. */
static void check_list(lua_State *L, size_t len)
{
	size_t keys = 0;

	lua_pushnil(L);
	while (lua_next(L, 1) != 0) {
		lua_pop(L, 1);
		keys++;
	}
	if (keys != len) {
		luaL_error(L, NAME ": expected a list of tables of options, got a table with other keys");
	}
}

int replay_new(lua_State *L)
{
	evrec_replay_variant variants[EVREC_REPLAY_VARIANTS];
	struct replay *replay;
	evrec_error err;
	size_t n;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	colon_refuse(L, 1, NAME);
	n = lua_rawlen(L, 1);
	check_list(L, n);
	for (size_t i = 0; i < n && i < EVREC_REPLAY_VARIANTS; i++) {
		read_variant(L, (int)i + 1, &variants[i]);
	}
	replay = box_new(L, &replay_type, sizeof(*replay));
	replay->variants = n;
	replay->replay = evrec_replay_new(variants, n, &err);
	return replay->replay != NULL ? 1 : options_refused(L, NAME, &err);
}

static struct replay *check_replay(lua_State *L)
{
	struct replay *replay = box_check(L, 1, &replay_type);

	if (replay->replay == NULL) {
		luaL_error(L, NAME ": was collected");
	}
	if (replay->finished) {
		luaL_error(L, NAME ": is finished");
	}
	return replay;
}

/* Lua: replay:feed(bytes) -> true, or nil, message, name */
static int replay_feed(lua_State *L)
{
	const struct replay *replay = check_replay(L);
	evrec_error err;
	evrec_str bytes;

	luaL_checktype(L, 2, LUA_TSTRING);
	bytes.data = lua_tolstring(L, 2, &bytes.len);
	if (evrec_replay_feed(replay->replay, bytes, &err) != 0) {
		return push_failure(L, &err);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* Lua: replay:add(event, time) -> true, or nil, message, name */
static int replay_add(lua_State *L)
{
	const struct replay *replay = check_replay(L);
	evrec_fields event;
	evrec_error err;
	int64_t t;

	if (!evrec_seconds_to_ns(luaL_checknumber(L, 3), &t)) {
		return luaL_argerror(L, 3, "no time");
	}
	lua_settop(L, 2);
	if (!event_at(L, 2, &event, &err) || evrec_replay_add(replay->replay, &event, t, &err) != 0) {
		return push_failure(L, &err);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* ---- results ---- */

static void set_time(lua_State *L, const char *name, int64_t ns)
{
	if (ns != EVREC_UNSET) {
		table_set_seconds(L, name, ns);
	}
}

static void push_trace(lua_State *L, const evrec_replay *replay)
{
	evrec_replayed_trace trace;

	evrec_replay_get_trace(replay, &trace);
	lua_newtable(L);
	table_set_count(L, "occurrences", trace.occurrences);
	table_set_count(L, "lost", trace.lost);
	table_set_count(L, "gaps", trace.gaps);
	table_set_count(L, "malformed", trace.malformed);
	set_time(L, "first", trace.first);
	set_time(L, "last", trace.last);
	if (trace.full) {
		table_set_word(L, "ended", "max_bytes");
	}
}

/* Sets the fields in the table at the top of the stack. */
static void set_tally(lua_State *L, const evrec_replayed_tally *tally)
{
	table_set_count(L, "created", tally->created);
	table_set_count(L, "patched", tally->patched);
	table_set_count(L, "aggregated", tally->aggregated);
	table_set_count(L, "rate_limited", tally->rate_limited);
	table_set_count(L, "counted", tally->counted);
	table_set_count(L, "unseen", tally->unseen);
	set_time(L, "last_write", tally->last_write);
}

static void push_variant(lua_State *L, const struct replay *replay, size_t i)
{
	evrec_replayed_variant variant;

	evrec_replay_get_variant(replay->replay, i, &variant);
	lua_newtable(L);
	set_tally(L, &variant.tally);
	table_set_count(L, "heartbeats", variant.heartbeats);
	table_set_count(L, "requests", variant.tally.created + variant.tally.patched + variant.heartbeats);
	table_set_count(L, "peak", variant.peak);
	if (variant.peak != 0) {
		set_time(L, "peak_minute", variant.peak_minute);
	}
	table_set_count(L, "buckets", variant.buckets);
	table_set_count(L, "buckets_max", variant.buckets_max);
}

/* Fields of set_fields and push_group, and of set_tally. With room for them a group takes 8,400 instructions less. */
#define GROUP_FIELDS 16
#define TALLY_FIELDS 7

static void set_fields(lua_State *L, const evrec_fields *event)
{
	table_set_text(L, "kind", event->regarding.kind);
	table_set_text(L, "namespace", event->regarding.ns);
	table_set_text(L, "name", event->regarding.name);
	table_set_optional(L, "uid", event->regarding.uid);
	table_set_optional(L, "apiVersion", event->regarding.api_version);
	table_set_optional(L, "component", event->component);
	table_set_optional(L, "host", event->host);
	table_set_optional(L, "controller", event->controller);
	table_set_optional(L, "instance", event->instance);
	table_set_text(L, "type", event->type);
	table_set_text(L, "reason", event->reason);
	table_set_text(L, "message", event->note);
}

struct pushing {
	lua_State *L;
	size_t variants;
	int n;
};

/* Runs inside of evrec_replay_each, which a Lua error may leave, as it owns nothing meanwhile. */
static bool push_group(void *ctx, const evrec_replayed_group *group)
{
	struct pushing *p = ctx;
	lua_State *L = p->L;

	lua_createtable(L, 0, GROUP_FIELDS);
	set_fields(L, group->event);
	table_set_count(L, "count", group->occurrences);
	set_time(L, "first", group->first);
	set_time(L, "last", group->last);
	lua_createtable(L, (int)p->variants, 0);
	for (size_t i = 0; i < p->variants; i++) {
		lua_createtable(L, 0, TALLY_FIELDS);
		set_tally(L, &group->tallies[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "variants");
	lua_rawseti(L, -2, ++p->n);
	return true;
}

/* Lua: replay:finish() -> { trace =, variants =, groups = }, or nil, message, name */
static int replay_finish(lua_State *L)
{
	struct replay *replay = check_replay(L);
	struct pushing pushing = { L, replay->variants, 0 };
	evrec_error err;

	if (evrec_replay_end(replay->replay, &err) != 0) {
		return push_failure(L, &err);
	}
	replay->finished = true;
	luaL_checkstack(L, 16, NAME);
	lua_newtable(L);
	push_trace(L, replay->replay);
	lua_setfield(L, -2, "trace");
	lua_newtable(L);
	for (size_t i = 0; i < replay->variants; i++) {
		push_variant(L, replay, i);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "variants");
	lua_newtable(L);
	evrec_replay_each(replay->replay, push_group, &pushing);
	lua_setfield(L, -2, "groups");
	return 1;
}

static int replay_gc(lua_State *L)
{
	struct replay *replay = lua_touserdata(L, 1);

	evrec_replay_free(replay->replay);
	replay->replay = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "feed", replay_feed }, { "add", replay_add }, { "finish", replay_finish }, { NULL, NULL }
};
static const luaL_Reg metamethods[] = { { "__gc", replay_gc }, { NULL, NULL } };

const struct box_type replay_type = { NAME, methods, metamethods };
