#include "correlate/replay.h"

#include "event/event.h"

#include <stdlib.h>

#define GROUPS_MAX (1u << 24)

static void group_fini(void *value)
{
	evrec_event_release(((struct replay_group *)value)->event);
}

static bool open_variants(evrec_replay *replay, const evrec_replay_variant *variants, evrec_error *err)
{
	for (size_t i = 0; i < replay->variants_len; i++) {
		if (!variant_create(&replay->variants[i], &variants[i], err)) {
			return false;
		}
	}
	return true;
}

evrec_replay *evrec_replay_new(const evrec_replay_variant *variants, size_t n, evrec_error *err)
{
	evrec_replay *replay;

	if (n < 1 || n > EVREC_REPLAY_VARIANTS) {
		error_set(err, EVREC_EINVALID, "variants: must be 1 to %d", EVREC_REPLAY_VARIANTS);
		return NULL;
	}
	replay = mem_zalloc(sizeof(*replay));
	if (replay != NULL) {
		replay->trace.first = replay->trace.last = EVREC_UNSET;
		replay->variants = mem_zalloc(n * sizeof(*replay->variants));
		replay->group_type.value_size = sizeof(struct replay_group) + n * sizeof(evrec_replayed_tally);
		replay->group_type.fini = group_fini;
		replay->groups = lru_new(&replay->group_type, GROUPS_MAX);
	}
	if (replay == NULL || replay->variants == NULL || replay->groups == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_replay_free(replay);
		return NULL;
	}
	replay->variants_len = n;
	if (!open_variants(replay, variants, err)) {
		evrec_replay_free(replay);
		return NULL;
	}
	return replay;
}

void evrec_replay_free(evrec_replay *replay)
{
	if (replay == NULL) {
		return;
	}
	for (size_t i = 0; i < replay->variants_len; i++) {
		variant_destroy(&replay->variants[i]);
	}
	mem_free(replay->variants);
	mem_free(replay->ordered);
	lru_free(replay->groups);
	replay_forget(&replay->single);
	replay_end_feed(replay);
	mem_free(replay);
}

/* ---- feeding ---- */

int evrec_replay_add(evrec_replay *replay, const evrec_fields *event, int64_t t, evrec_error *err)
{
	static const struct trace_keys none = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
	evrec_event *copy = evrec_event_new(event);

	if (copy == NULL || !replay_know(replay, &replay->single, copy, &none) ||
	    !replay_occur(replay, &replay->single, t, t)) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	return 0;
}

/* ---- results ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t x = (*(struct replay_group *const *)a)->number, y = (*(struct replay_group *const *)b)->number;

	return x > y ? -1 : x < y;
}

/* False: no memory. */
static bool order_groups(evrec_replay *replay)
{
	const size_t n = lru_len(replay->groups);

	mem_free(replay->ordered);
	replay->ordered = mem_alloc(n * sizeof(struct replay_group *) + 1);
	for (size_t i = 0; i < n && replay->ordered != NULL; i++) {
		replay->ordered[i] = lru_in_place(replay->groups, (uint32_t)i);
	}
	if (n != 0 && replay->ordered != NULL) {
		qsort(replay->ordered, n, sizeof(struct replay_group *), compare);
	}
	return replay->ordered != NULL;
}

int evrec_replay_end(evrec_replay *replay, evrec_error *err)
{
	evrec_error own;

	/* A truncated last line, of a killed process, counts as malformed; it may be the header. */
	if (replay->rest.len != 0) {
		const int code = evrec_replay_feed(replay, EVREC_STR("\n"), &own);

		if (code == EVREC_ENOMEM) {
			return error_set(err, EVREC_ENOMEM, "no memory");
		}
		replay->trace.malformed += code != 0;
	}
	for (size_t i = 0; i < replay->variants_len; i++) {
		if (!variant_end(&replay->variants[i], replay->trace.last)) {
			return error_set(err, EVREC_ENOMEM, "no memory");
		}
	}
	return order_groups(replay) ? 0 : error_set(err, EVREC_ENOMEM, "no memory");
}

void evrec_replay_get_trace(const evrec_replay *replay, evrec_replayed_trace *trace)
{
	*trace = replay->trace;
}

struct summing {
	size_t variant;
	evrec_replayed_tally *sum;
};

static bool add_group(void *ctx, evrec_str key, void *value)
{
	const struct summing *s = ctx;
	const evrec_replayed_tally *tally = &((const struct replay_group *)value)->tallies[s->variant];

	(void)key;
	s->sum->created += tally->created;
	s->sum->patched += tally->patched;
	s->sum->aggregated += tally->aggregated;
	s->sum->rate_limited += tally->rate_limited;
	s->sum->counted += tally->counted;
	s->sum->unseen += tally->unseen;
	s->sum->last_write = tally->last_write > s->sum->last_write ? tally->last_write : s->sum->last_write;
	return true;
}

void evrec_replay_get_variant(const evrec_replay *replay, size_t variant, evrec_replayed_variant *result)
{
	const struct variant *v = &replay->variants[variant];
	evrec_correlator_stats stats = { 0 };
	struct summing summing = { variant, &result->tally };

	*result = (evrec_replayed_variant){
		.tally.last_write = EVREC_UNSET,
		.heartbeats = v->heartbeats,
		.peak = v->minutes.peak,
		.peak_minute = v->minutes.peak_minute,
		.buckets_max = v->buckets_max,
	};
	if (v->correlator != NULL) {
		evrec_correlator_get_stats(v->correlator, &stats);
		result->buckets = stats.buckets;
	}
	lru_each(replay->groups, add_group, &summing);
}

void evrec_replay_each(const evrec_replay *replay, bool (*func)(void *ctx, const evrec_replayed_group *group),
                       void *ctx)
{
	bool goes_on = replay->ordered != NULL;

	for (size_t i = 0; goes_on && i < lru_len(replay->groups); i++) {
		const struct replay_group *group = replay->ordered[i];
		const evrec_replayed_group shown = { evrec_event_fields(group->event), group->occurrences, group->first,
			                             group->last, group->tallies };

		goes_on = func(ctx, &shown);
	}
}
