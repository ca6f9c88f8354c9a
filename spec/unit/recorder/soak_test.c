/*
 * Soak test: thirty days of an operator by a fake clock. Pods crash, go, and return under other names; the server has good
 * and bad hours; callbacks, watches and sinks come and go. The counters are consistent after every minute, all events are
 * delivered by the end of every day, and the memory in use then does not grow from week to week.
 *
 * EVREC_SEED repeats a run. With fewer than 10,000 EVREC_SEEDS, as under the sanitizers, it runs fewer days.
 */
#include "counting_allocator.h"
#include "stats_invariants.h"

#define MINUTE (60 * EVREC_SECOND)
#define HOUR (60 * MINUTE)
#define DAYS 30
#define WEEK 7
#define WARM WEEK /* days until all caches were full more than once */
#define EVENTS 4  /* a minute */
#define PODS 40
#define CRASHING 4 /* pods with half of all events */
#define SINKS 3
#define NAMESPACES 80
#define CACHE 300 /* entries: few, so that all are reused each day */

/* How the server answers for an hour. */
static const struct weather {
	int create, patch;
	bool unsent, terminating;
	int64_t retry_after;
	const char *message;
} weathers[] = {
	{ .create = 201, .patch = 200 },
	{ .create = 503, .patch = 503, .retry_after = 5 * EVREC_SECOND, .message = "etcd has no leader" },
	{ .create = 429, .patch = 429, .retry_after = 90 * EVREC_SECOND, .message = "too many requests" },
	{ .create = 500, .patch = 500, .message = "internal error" },
	{ .message = "timed out" },
	{ .unsent = true, .message = "connection refused" },
	{ .create = 401, .patch = 401, .message = "unauthorized" },
	{ .create = 403, .patch = 403, .message = "is forbidden: User \"u\" cannot create resource \"events\"" },
	{ .create = 403, .patch = 200, .terminating = true, .message = "is forbidden: being terminated" },
	{ .create = 201, .patch = 404, .message = "not found" },
	{ .create = 404, .patch = 404, .message = "no such namespace" },
	{ .create = 409, .patch = 409, .message = "taken" },
	{ .create = 422, .patch = 422, .message = "invalid" },
};
#define WEATHERS (sizeof(weathers) / sizeof(weathers[0]))

struct soak {
	struct counting_allocator allocator;
	uint64_t random;
	evrec_clock *clock;
	int64_t now;
	const struct weather *weather;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *sinks[SINKS], *watcher, *queue;
	unsigned pods[PODS], next_pod, messages;
	bool storm; /* similar events about one pod */
	uint64_t created, patched, seen, pulled, drops, errors;
	char key[2][64]; /* chosen by callbacks */
	size_t explained;
};

static unsigned below(struct soak *s, unsigned n)
{
	return (unsigned)(unit_random(&s->random) % n);
}

/* ---- the server ---- */

static void answer_event(struct soak *s, const evrec_event *event, int status, evrec_answer *answer)
{
	const struct weather *w = s->weather;

	answer->status = status;
	if (status == 200 || status == 201) {
		*(status == 201 ? &s->created : &s->patched) += 1;
		(void)snprintf(answer->resource_version, sizeof(answer->resource_version), "%08u", below(s, 100000000));
		if (status == 201 && below(s, 8) == 0) {
			(void)snprintf(answer->name, sizeof(answer->name), "stored-%08u", below(s, 100000000));
		}
		return;
	}
	answer->unsent = w->unsent;
	answer->terminating = w->terminating;
	answer->retry_after = w->retry_after;
	(void)snprintf(answer->message, sizeof(answer->message), "events \"%.*s\" %s",
	               (int)evrec_event_fields(event)->name.len, evrec_event_fields(event)->name.data, w->message);
}

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	answer_event(ctx, event, ((struct soak *)ctx)->weather->create, answer);
}

static void patch(void *ctx, const evrec_event *event, evrec_str body, evrec_answer *answer)
{
	assert_true(body.len != 0);
	answer_event(ctx, event, ((struct soak *)ctx)->weather->patch, answer);
}

/* ---- callbacks ---- */

static void record(struct soak *s);

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct soak *s = ctx;

	assert_true(event != NULL && why != NULL);
	if (++s->drops % 100 == 0) {
		record(s);
	}
}

static void on_error(void *ctx, const char *message, const char *name)
{
	assert_true(message != NULL && name != NULL);
	((struct soak *)ctx)->errors++;
}

static void on_event(void *ctx, evrec_event *event)
{
	assert_non_null(event);
	((struct soak *)ctx)->seen++;
}

static bool choose_key(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	struct soak *s = ctx;

	(void)snprintf(s->key[0], sizeof(s->key[0]), "%.*s/%.*s", (int)event->regarding.name.len,
	               event->regarding.name.data, (int)event->type.len, event->type.data);
	*aggregate_key = str_from(s->key[0]);
	*local_key = event->note;
	return below(s, 10) != 0;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	struct soak *s = ctx;

	(void)snprintf(s->key[1], sizeof(s->key[1]), "%.*s", (int)event->regarding.uid.len, event->regarding.uid.data);
	*key = str_from(s->key[1]);
	return true;
}

static bool explain_one(void *ctx, const evrec_suppressed *suppressed)
{
	assert_true(suppressed->count != 0 && suppressed->first <= suppressed->last);
	((struct soak *)ctx)->explained++;
	return true;
}

/* ---- events ---- */

static void start_sink(struct soak *s, unsigned i)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	evrec_correlator_options correlator;
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_sink_options_init(&common);
	common.limits.max_pending = 40;
	common.limits.full = i == 0 ? EVREC_DROP_OLDEST : EVREC_DROP_NEWEST;
	common.limits.max_age = i == 0 ? HOUR / 2 : 0;
	common.limits.max_tries = i == 1 ? 12 : 0;
	evrec_correlator_options_init(&correlator);
	correlator.lru_cache_size = CACHE;
	if (i == 1) {
		correlator.key_func = choose_key;
		correlator.spam_key_func = choose_spam_key;
		correlator.ctx = s;
	}
	sink = evrec_sink_new(&ops, s, &common, NULL);
	s->sinks[i] = evrec_broadcaster_start_recording_to_sink(s->b, sink, &correlator, NULL);
	assert_non_null(s->sinks[i]);
	evrec_sink_release(sink);
}

static void record(struct soak *s)
{
	static const char *const reasons[] = { "BackOff", "Unhealthy", "FailedMount", "Scheduled" };
	static char filling[1200];
	char name[32], uid[40], ns[16], note[sizeof(filling) + 64];
	unsigned pod = s->pods[s->storm ? 0 : below(s, below(s, 2) == 0 ? CRASHING : PODS)];
	const evrec_reference object = { .kind = EVREC_STR("Pod"),
		                         .name = { name, (size_t)snprintf(name, sizeof(name), "web-%08u", pod) },
		                         .ns = { ns, (size_t)snprintf(ns, sizeof(ns), "shop-%02u", pod % NAMESPACES) },
		                         .uid = { uid, (size_t)snprintf(uid, sizeof(uid), "%08x-0000", pod) } };
	evrec_emit emit = { .regarding = &object,
		            .type = below(s, 3) == 0 && !s->storm ? EVREC_STR("Warning") : EVREC_STR("Normal"),
		            .reason = str_from(reasons[s->storm ? 0 : below(s, 4)]),
		            .note = { note, 0 },
		            .timestamp = EVREC_UNSET };

	memset(filling, 'x', sizeof(filling) - 1);
	switch (s->storm ? 0 : below(s, 4)) {
	case 0: /* a new message */
		emit.note.len = (size_t)snprintf(note, sizeof(note), "probe %08u failed", s->messages++);
		break;
	case 1: /* a message that is cut */
		emit.note.len = (size_t)snprintf(note, sizeof(note), "%08u: %s", below(s, 100), filling);
		break;
	default:
		emit.note.len = (size_t)snprintf(note, sizeof(note), "restarting container %u", below(s, 2));
		break;
	}
	assert_int_equal(evrec_recorder_emit(s->r, &emit, NULL), 0);
}

static void replace_pods(struct soak *s)
{
	s->pods[CRASHING + below(s, PODS - CRASHING)] = s->next_pod++;
	if (below(s, 100) == 0) {
		s->pods[below(s, CRASHING)] = s->next_pod++;
	}
}

static void pull(struct soak *s)
{
	evrec_event *event;

	while ((event = evrec_watch_next(s->queue)) != NULL) {
		s->pulled++;
		evrec_event_release(event);
	}
}

static void advance(struct soak *s, int64_t by)
{
	s->now += by;
	evrec_clock_set(s->clock, s->now);
	evrec_broadcaster_poll(s->b);
	(void)stats_check_equations(s->b);
}

/* Each kind of hour once, then any of them; half of them are good ones. */
static void change_weather(struct soak *s, unsigned day, unsigned hour)
{
	if (hour == 23) {
		s->weather = &weathers[0];
	} else if (day == 0) {
		s->weather = &weathers[hour % WEATHERS];
	} else {
		s->weather = &weathers[below(s, 2) == 0 ? 0 : below(s, WEATHERS)];
	}
}

/* The last hour of a day is a good one: all events must be delivered. */
static void deliver_all(struct soak *s)
{
	evrec_sink_stats stats;

	for (unsigned i = 0; i < 10; i++) {
		advance(s, 2 * MINUTE);
	}
	for (size_t i = 1; evrec_broadcaster_next_sink(s->b, &i); i++) {
		assert_true(evrec_broadcaster_get_sink_stats(s->b, i, &stats));
		assert_int_equal(stats.pending, 0);
	}
}

/* Once a day: explain, and a new watcher and sink. */
static void explain_and_restart(struct soak *s)
{
	char name[32];
	evrec_reference object = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop-00"), .name = { name, 0 } };

	object.name.len = (size_t)snprintf(name, sizeof(name), "web-%08u", s->pods[0]);
	for (size_t i = 1; i <= 2; i++) {
		evrec_broadcaster_explain(s->b, i, NULL, explain_one, s);
		evrec_broadcaster_explain(s->b, i, &object, explain_one, s);
	}
	pull(s);
	evrec_watch_stop(s->watcher);
	evrec_watch_free(s->watcher);
	s->watcher = evrec_broadcaster_start_event_watcher(s->b, on_event, s, NULL);
	assert_non_null(s->watcher);
	evrec_watch_stop(s->sinks[SINKS - 1]);
	evrec_watch_free(s->sinks[SINKS - 1]);
	start_sink(s, SINKS - 1);
}

static void live_a_day(struct soak *s, unsigned day)
{
	for (unsigned hour = 0; hour < 24; hour++) {
		change_weather(s, day, hour);
		for (unsigned minute = 0; minute < 60; minute++) {
			s->storm = minute == 0;
			for (unsigned i = s->storm ? 20 : EVENTS; i > 0; i--) {
				record(s);
			}
			replace_pods(s);
			advance(s, MINUTE);
		}
		if (hour % 2 == 0) {
			pull(s);
		}
	}
	deliver_all(s);
	explain_and_restart(s);
	advance(s, MINUTE);
}

static void begin(struct soak *s)
{
	evrec_broadcaster_options options;

	*s = (struct soak){ .random = unit_seed(), .now = T0, .next_pod = PODS };
	evrec_set_allocator(counting_realloc, &s->allocator);
	s->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = s->clock;
	options.on_drop = on_drop;
	options.on_error = on_error;
	options.ctx = s;
	s->b = evrec_broadcaster_new(&options, NULL);
	s->r = evrec_recorder_new(
		s->b, &(evrec_recorder_options){ .component = EVREC_STR("kubelet"), .host = EVREC_STR("node-1") },
		NULL);
	for (unsigned i = 0; i < PODS; i++) {
		s->pods[i] = i;
	}
	for (unsigned i = 0; i < SINKS; i++) {
		start_sink(s, i);
	}
	s->watcher = evrec_broadcaster_start_event_watcher(s->b, on_event, s, NULL);
	s->queue = evrec_broadcaster_watch(s->b, 400, NULL);
	assert_true(s->r != NULL && s->watcher != NULL && s->queue != NULL);
}

static void end(struct soak *s)
{
	assert_int_equal(evrec_broadcaster_shutdown(s->b, 0, NULL), EVREC_ELOST);
	(void)stats_check_equations(s->b);
	evrec_broadcaster_free(s->b);
	evrec_recorder_free(s->r);
	for (unsigned i = 0; i < SINKS; i++) {
		evrec_watch_free(s->sinks[i]);
	}
	evrec_watch_free(s->watcher);
	evrec_watch_free(s->queue);
	evrec_clock_release(s->clock);
	assert_int_equal(s->allocator.live, 0);
	evrec_set_allocator(NULL, NULL);
}

/* The mean of a week. */
static size_t mean(const size_t *live)
{
	size_t sum = 0;

	for (unsigned i = 0; i < WEEK; i++) {
		sum += live[i];
	}
	return sum / WEEK;
}

/* The run met all kinds of trouble. */
static void assert_covered(const struct soak *s)
{
	evrec_sink_stats stats;

	assert_true(s->created > 10000 && s->patched > 1000 && s->seen > 10000 && s->pulled > 10000);
	assert_true(s->drops > 1000 && s->errors > 1000 && s->explained > 1000);
	for (size_t i = 1; i <= 2; i++) {
		assert_true(evrec_broadcaster_get_sink_stats(s->b, i, &stats));
		assert_true(stats.rate_limited > 1000 && stats.correlator.why[EVREC_AGGREGATED] > 1000);
		assert_int_equal(stats.correlator.aggregates, CACHE);
		assert_int_equal(stats.correlator.observed, CACHE);
		assert_int_equal(stats.correlator.buckets, CACHE);
		for (int cause = 0; cause < EVREC_CAUSES; cause++) {
			bool never = cause == EVREC_CAUSE_CLOSED || cause == EVREC_CAUSE_MEMORY ||
			             cause == EVREC_CAUSE_UNFIT || (i == 1 && cause == EVREC_CAUSE_MAX_TRIES) ||
			             (i == 2 && cause == EVREC_CAUSE_EXPIRED);

			if ((stats.dropped[cause] == 0) != never) {
				fail_msg("sink %zu: %llu dropped: %s", i, (unsigned long long)stats.dropped[cause],
				         evrec_cause_name((enum evrec_cause)cause));
			}
		}
	}
}

static unsigned days_to_live(void)
{
	const char *seeds = getenv("EVREC_SEEDS");
	unsigned long days = seeds == NULL ? DAYS : strtoul(seeds, NULL, 10) * DAYS / 10000;

	return days < 1 ? 1 : days > DAYS ? DAYS : (unsigned)days;
}

static void test_memory_is_constant_over_thirty_days(void **state)
{
	static struct soak s;
	const unsigned days = days_to_live();
	size_t live[DAYS], first, last;

	(void)state;
	begin(&s);
	for (unsigned day = 0; day < days; day++) {
		live_a_day(&s, day);
		live[day] = s.allocator.live;
	}
	if (days == DAYS) {
		first = mean(live + WARM);
		last = mean(live + DAYS - WEEK);
		print_message("bytes at the end of a day: %zu in the second week, %zu in the last\n", first, last);
		assert_true(last < first + first / 20); /* the lengths of cached strings are random */
		assert_covered(&s);
	}
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory_is_constant_over_thirty_days) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
