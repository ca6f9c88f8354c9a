#include "lua/stats.h"

#include "lua/correlator.h"
#include "lua/explain.h"

/* Every cause is there, also those of which there was none: a dashboard's columns do not come and go. */
static void set_dropped(lua_State *L, const char *name, const uint64_t dropped[EVREC_CAUSES])
{
	int i;

	lua_createtable(L, 0, EVREC_CAUSES);
	for (i = 0; i < EVREC_CAUSES; i++) {
		stats_set(L, evrec_cause_name((enum evrec_cause)i), dropped[i]);
	}
	lua_setfield(L, -2, name);
}

void stats_push_sink(lua_State *L, const evrec_sink_stats *stats)
{
	lua_newtable(L);
	lua_pushstring(L, stats->name);
	lua_setfield(L, -2, "name");
	stats_set(L, "received", stats->received);
	stats_set(L, "rate_limited", stats->rate_limited);
	stats_set(L, "created", stats->created);
	stats_set(L, "patched", stats->patched);
	stats_set(L, "coalesced", stats->coalesced);
	stats_set(L, "pending", stats->pending);
	stats_set(L, "spooled", stats->spooled);
	stats_set(L, "restored", stats->restored);
	stats_set(L, "pending_writes", stats->pending_writes);
	stats_set(L, "pending_bytes", stats->pending_bytes);
	stats_set(L, "retries", stats->retries);
	stats_set(L, "errors_lost", stats->errors_lost);
	set_dropped(L, "dropped", stats->dropped);
	correlator_push_stats(L, &stats->correlator);
	lua_setfield(L, -2, "correlator");
}

/* The sums over all sinks. */
static void add(evrec_sink_stats *sum, const evrec_sink_stats *one)
{
	int i;

	sum->rate_limited += one->rate_limited;
	sum->created += one->created;
	sum->patched += one->patched;
	sum->coalesced += one->coalesced;
	sum->pending += one->pending;
	sum->spooled += one->spooled;
	sum->restored += one->restored;
	sum->retries += one->retries;
	for (i = 0; i < EVREC_CAUSES; i++) {
		sum->dropped[i] += one->dropped[i];
	}
}

/* Sets `sinks`, and adds them up. */
static void set_sinks(lua_State *L, const evrec_broadcaster *b, evrec_sink_stats *sum)
{
	evrec_sink_stats one;
	size_t i;

	lua_newtable(L);
	for (i = 0; evrec_broadcaster_get_sink_stats(b, i, &one); i++) {
		add(sum, &one);
		stats_push_sink(L, &one);
		explain_push_rate_limited(L, b, i);
		lua_setfield(L, -2, "suppressed");
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "sinks");
}

void stats_push(lua_State *L, const evrec_broadcaster *b)
{
	evrec_sink_stats sum = { 0 };
	evrec_stats stats;
	int i;

	luaL_checkstack(L, LUA_MINSTACK, "stats");
	evrec_broadcaster_get_stats(b, &stats);
	for (i = 0; i < EVREC_CAUSES; i++) {
		sum.dropped[i] = stats.dropped[i];
	}
	lua_newtable(L);
	stats_set(L, "recorded", stats.recorded);
	stats_set(L, "broadcast", stats.broadcast);
	stats_set(L, "queued", stats.queued);
	stats_set(L, "invalid", stats.invalid);
	stats_set(L, "watch_dropped", stats.watch_dropped);
	stats_set(L, "callback_errors", stats.callback_errors);
	set_dropped(L, "refused", stats.dropped);
	set_sinks(L, b, &sum);
	stats_set(L, "rate_limited", sum.rate_limited);
	stats_set(L, "created", sum.created);
	stats_set(L, "patched", sum.patched);
	stats_set(L, "coalesced", sum.coalesced);
	stats_set(L, "pending", sum.pending);
	stats_set(L, "spooled", sum.spooled);
	stats_set(L, "restored", sum.restored);
	stats_set(L, "retries", sum.retries);
	set_dropped(L, "dropped", sum.dropped);
}
