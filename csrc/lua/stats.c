#include "lua/stats.h"

#include "lua/correlator.h"
#include "lua/suppressed.h"
#include "lua/table.h"

/* Sets every cause, zeros included, so that the columns of a dashboard do not come and go. */
static void set_dropped(lua_State *L, const char *name, const uint64_t dropped[EVREC_CAUSES])
{
	int i;

	lua_createtable(L, 0, EVREC_CAUSES);
	for (i = 0; i < EVREC_CAUSES; i++) {
		table_set_count(L, evrec_cause_name((enum evrec_cause)i), dropped[i]);
	}
	lua_setfield(L, -2, name);
}

static void set_throttle(lua_State *L, const evrec_throttle_stats *throttle)
{
	lua_createtable(L, 0, 4);
	table_set_count(L, "window", throttle->window);
	table_set_number(L, "rate", throttle->rate);
	table_set_seconds(L, "paused_for", throttle->paused_for);
	table_set_count(L, "refused", throttle->refused);
	lua_setfield(L, -2, "throttle");
}

static void set_series(lua_State *L, const evrec_series_stats *series)
{
	lua_createtable(L, 0, 7);
	table_set_count(L, "series", series->series);
	table_set_count(L, "ongoing", series->ongoing);
	table_set_count(L, "begun", series->begun);
	table_set_count(L, "finished", series->finished);
	table_set_count(L, "evicted", series->evicted);
	table_set_count(L, "evicted_singles", series->evicted_singles);
	table_set_count(L, "notes", series->notes);
	lua_setfield(L, -2, "series");
}

static void push_counters(lua_State *L, const evrec_sink_stats *stats)
{
	lua_newtable(L);
	table_set_count(L, "received", stats->received);
	table_set_count(L, "rate_limited", stats->rate_limited);
	table_set_count(L, "created", stats->created);
	table_set_count(L, "patched", stats->patched);
	table_set_count(L, "coalesced", stats->coalesced);
	table_set_count(L, "counted", stats->counted);
	table_set_count(L, "pending", stats->pending);
	table_set_count(L, "spooled", stats->spooled);
	table_set_count(L, "forwarded", stats->forwarded);
	table_set_count(L, "restored", stats->restored);
	table_set_count(L, "pending_writes", stats->pending_writes);
	table_set_count(L, "pending_bytes", stats->pending_bytes);
	table_set_count(L, "retries", stats->retries);
	table_set_count(L, "errors_lost", stats->errors_lost);
	table_set_count(L, "notes_lost", stats->notes_lost);
	set_throttle(L, &stats->throttle);
	set_dropped(L, "dropped", stats->dropped);
	correlator_push_stats(L, &stats->correlator);
	lua_setfield(L, -2, "correlator");
	set_series(L, &stats->series);
}

void stats_push_sink(lua_State *L, const evrec_sink_stats *stats)
{
	push_counters(L, stats);
	table_set_word(L, "name", stats->name);
	table_set_count(L, "number", stats->number);
	table_set_word(L, "api", stats->api == EVREC_CORE_V1 ? "v1" : "events.k8s.io/v1");
}

static void set_suppressed(lua_State *L, const struct snapshot_sink *sink)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < sink->suppressed_len; i++) {
		suppressed_push_summary(L, &sink->suppressed[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "suppressed");
}

/* Adds the counters that stats() has sums of. */
static void add(evrec_sink_stats *sum, const evrec_sink_stats *one)
{
	int i;

	sum->rate_limited += one->rate_limited;
	sum->created += one->created;
	sum->patched += one->patched;
	sum->coalesced += one->coalesced;
	sum->counted += one->counted;
	sum->pending += one->pending;
	sum->spooled += one->spooled;
	sum->forwarded += one->forwarded;
	sum->restored += one->restored;
	sum->retries += one->retries;
	for (i = 0; i < EVREC_CAUSES; i++) {
		sum->dropped[i] += one->dropped[i];
	}
}

/* Sets the field `sinks`, and adds the counters of every sink to *sum. */
static void set_sinks(lua_State *L, const struct snapshot *snapshot, evrec_sink_stats *sum)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < snapshot->stats.sinks; i++) {
		const struct snapshot_sink *sink = &snapshot->sinks[i];

		add(sum, &sink->stats);
		stats_push_sink(L, &sink->stats);
		set_suppressed(L, sink);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "sinks");
}

static void set_recorders(lua_State *L, const struct snapshot *snapshot)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < snapshot->recorders_len; i++) {
		const evrec_recorder_stats *recorder = &snapshot->recorders[i];

		lua_createtable(L, 0, 5);
		table_set_optional(L, "component", recorder->component);
		table_set_optional(L, "host", recorder->host);
		table_set_optional(L, "instance", recorder->instance);
		table_set_count(L, "reasons", recorder->reasons);
		table_set_count(L, "actions", recorder->actions);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "recorders");
}

static void set_share(lua_State *L, const evrec_stats *stats)
{
	static const char *const words[] = { NULL, "seeking", "worker", "owner", "silent" };

	if (stats->share_role != EVREC_SHARE_NONE) {
		table_set_word(L, "share", words[stats->share_role]);
	}
	if (stats->share_role == EVREC_SHARE_SILENT) {
		table_set_seconds(L, "share_silent_for", stats->share_silent_for);
	}
}

static bool is_rate_limited(const evrec_suppressed *suppressed)
{
	return suppressed->stage == EVREC_STAGE_RATE_LIMITED;
}

static void push(lua_State *L, const struct snapshot *snapshot)
{
	const evrec_stats *stats = &snapshot->stats;
	evrec_sink_stats sum = { 0 };
	int i;

	for (i = 0; i < EVREC_CAUSES; i++) {
		sum.dropped[i] = stats->dropped[i];
	}
	lua_newtable(L);
	table_set_count(L, "recorded", stats->recorded);
	table_set_count(L, "broadcast", stats->broadcast);
	table_set_count(L, "queued", stats->queued);
	table_set_count(L, "invalid", stats->invalid);
	table_set_count(L, "watch_dropped", stats->watch_dropped);
	table_set_count(L, "callback_errors", stats->callback_errors);
	table_set_count(L, "untold", stats->untold);
	set_dropped(L, "refused", stats->dropped);
	push_counters(L, &stats->ended);
	lua_setfield(L, -2, "ended");
	add(&sum, &stats->ended);
	set_sinks(L, snapshot, &sum);
	set_recorders(L, snapshot);
	set_share(L, stats);
	table_set_count(L, "components", stats->components);
	table_set_count(L, "rate_limited", sum.rate_limited);
	table_set_count(L, "created", sum.created);
	table_set_count(L, "patched", sum.patched);
	table_set_count(L, "coalesced", sum.coalesced);
	table_set_count(L, "counted", sum.counted);
	table_set_count(L, "pending", sum.pending);
	table_set_count(L, "spooled", sum.spooled);
	table_set_count(L, "forwarded", sum.forwarded);
	table_set_count(L, "restored", sum.restored);
	table_set_count(L, "retries", sum.retries);
	set_dropped(L, "dropped", sum.dropped);
}

bool stats_push(lua_State *L, const struct broadcaster *b)
{
	const struct snapshot *snapshot = snapshot_push(L, b, is_rate_limited);

	if (snapshot == NULL) {
		return false;
	}
	push(L, snapshot);
	lua_remove(L, -2);
	return true;
}
