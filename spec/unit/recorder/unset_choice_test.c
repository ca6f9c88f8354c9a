/*
 * A function of a correlator returns true, and does not set a string: the default takes the place of that string. So it is
 * in a correlator, in a broadcaster with and without a name, and in a trace.
 */
#include "correlations.h"
#include "recorder_fixture.h"
#include "tmpdir.h"
#include "traced.h"

struct choices {
	evrec_str aggregate; /* of every event; unset: the default's */
	bool message, spam;  /* chosen; else unset */
};

static bool choose_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	const struct choices *choices = ctx;

	(void)event;
	(void)local_key;
	if (choices->aggregate.data != NULL) {
		*aggregate_key = choices->aggregate;
	}
	return true;
}

static bool choose_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	(void)event;
	if (((const struct choices *)ctx)->message) {
		*message = EVREC_STR("");
	}
	return true;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)event;
	if (((const struct choices *)ctx)->spam) {
		*key = EVREC_STR("");
	}
	return true;
}

static evrec_correlator_options options_of(struct choices *choices)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.max_events = 3;
	options.burst_size = 5;
	options.key_func = choose_keys;
	options.message_func = choose_message;
	options.spam_key_func = choose_spam_key;
	options.ctx = choices;
	return options;
}

struct occurrence {
	const char *object, *reason, *note;
};

/* By the default keys the fifth event is the first aggregate, and the eighth, about the same object, has no token. */
static const struct occurrence occurrences[] = {
	{ "a", "R", "1" }, { "b", "Q", "2" }, { "a", "S", "3" }, { "a", "R", "4" },
	{ "a", "R", "5" }, { "b", "Q", "6" }, { "a", "T", "7" }, { "a", "T", "8" },
};
#define N (sizeof(occurrences) / sizeof(occurrences[0]))

struct result {
	enum evrec_why why[N];
	char note[N][64];
};

static struct result by_correlator(struct choices *choices)
{
	const evrec_correlator_options options = options_of(choices);
	evrec_correlator *c = correlator_with(&options);
	struct result result = { .why = { EVREC_NEW } };

	for (size_t i = 0; i < N; i++) {
		const struct occurrence *o = &occurrences[i];
		const evrec_correlation r = correlate_pod_event(c, o->object, o->reason, o->note, T0);

		result.why[i] = r.why;
		if (!r.skip) {
			(void)snprintf(result.note[i], sizeof(result.note[i]), "%.*s", (int)r.event.note.len,
			               r.event.note.len == 0 ? "" : r.event.note.data);
		}
	}
	evrec_correlator_free(c);
	return result;
}

static void keep_note(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	const evrec_str note = evrec_event_fields(event)->note;
	char *kept = ctx;

	(void)snprintf(kept, 64, "%.*s", (int)note.len, note.len == 0 ? "" : note.data);
	answer->status = 200;
}

static void keep_patched_note(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	(void)patch;
	keep_note(ctx, event, answer);
}

static struct result by_broadcaster(struct choices *choices, const char *name)
{
	static const evrec_sink_ops ops = { .create = keep_note, .patch = keep_patched_note };
	struct recorder_fixture f = { .status = 200, .clock = evrec_clock_fake(T0) };
	const evrec_correlator_options correlator = options_of(choices);
	struct result result = { .why = { EVREC_NEW } };
	evrec_broadcaster_options options;
	uint64_t known[EVREC_WHYS] = { 0 };
	evrec_sink_stats stats;
	evrec_watch *watch;
	char note[64];

	evrec_broadcaster_options_init(&options);
	options.clock = f.clock;
	options.name = evrec_string(name);
	f.b = evrec_broadcaster_new(&options, NULL);
	f.r = evrec_recorder_new(f.b, NULL, NULL);
	f.sink = evrec_sink_new(&ops, note, NULL, NULL);
	watch = evrec_broadcaster_start_recording_to_sink(f.b, f.sink, &correlator, NULL);
	assert_true(f.r != NULL && watch != NULL);
	for (size_t i = 0; i < N; i++) {
		const struct occurrence *o = &occurrences[i];

		note[0] = '\0';
		assert_int_equal(recorder_fixture_record(&f, o->object, o->reason, o->note), 0);
		assert_int_equal(evrec_broadcaster_flush(f.b, SOON, NULL), 0);
		assert_true(evrec_watch_get_sink_stats(watch, &stats));
		for (size_t why = 0; why < EVREC_WHYS; why++) {
			result.why[i] = stats.correlator.why[why] != known[why] ? (enum evrec_why)why : result.why[i];
			known[why] = stats.correlator.why[why];
		}
		memcpy(result.note[i], note, sizeof(note));
	}
	evrec_watch_free(watch);
	evrec_recorder_free(f.r);
	evrec_broadcaster_free(f.b);
	evrec_sink_release(f.sink);
	evrec_clock_release(f.clock);
	return result;
}

static void check_equal(const struct result *a, const struct result *b)
{
	for (size_t i = 0; i < N; i++) {
		assert_string_equal(evrec_why_name(a->why[i]), evrec_why_name(b->why[i]));
		assert_string_equal(a->note[i], b->note[i]);
	}
}

static struct result check_all(struct choices *choices)
{
	const struct result expected = by_correlator(choices), plain = by_broadcaster(choices, "");
	const struct result named = by_broadcaster(choices, "unset");

	check_equal(&expected, &plain);
	check_equal(&expected, &named);
	return expected;
}

static void test_unset_strings_leave_the_defaults(void **state)
{
	struct choices choices = { .message = false };
	const struct result result = check_all(&choices);

	(void)state;
	assert_int_equal(result.why[3], EVREC_NEW);
	assert_int_equal(result.why[4], EVREC_AGGREGATED);
	assert_string_equal(result.note[4], "(combined from similar events): 5");
	assert_int_equal(result.why[6], EVREC_NEW);
	assert_int_equal(result.why[7], EVREC_RATE_LIMITED);
}

static void test_an_unset_local_key_is_the_message(void **state)
{
	struct choices choices = { .aggregate = EVREC_STR("all") };
	const struct result result = check_all(&choices);

	(void)state;
	assert_int_equal(result.why[1], EVREC_NEW);
	assert_int_equal(result.why[2], EVREC_AGGREGATED);
}

/* An empty string is a choice. */
static void test_empty_strings_are_chosen(void **state)
{
	struct choices choices = { .aggregate = EVREC_STR(""), .message = true, .spam = true };
	const struct result result = check_all(&choices);

	(void)state;
	assert_int_equal(result.why[2], EVREC_AGGREGATED);
	assert_string_equal(result.note[2], "");
	assert_int_equal(result.why[5], EVREC_RATE_LIMITED);
}

static void test_a_trace_has_the_defaults(void **state)
{
	struct choices choices = { .aggregate = EVREC_STR("all") };
	evrec_correlator_options options = options_of(&choices);
	const struct result expected = by_correlator(&choices);
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	unsigned aggregated = 0;
	struct traced t;

	traced_begin(&t, path, 1 << 20, &options);
	for (size_t i = 0; i < N; i++) {
		const struct occurrence *o = &occurrences[i];

		traced_record(&t, (uint64_t)o->object[0], o->reason, o->note);
		aggregated += expected.why[i] == EVREC_AGGREGATED;
	}
	assert_int_equal(evrec_broadcaster_flush(t.b, SOON, NULL), 0);
	options.key_func = NULL;
	options.message_func = NULL;
	options.spam_key_func = NULL;
	traced_replay(path, &options, &trace, &result);
	assert_int_equal(trace.occurrences, N);
	assert_int_equal(result.tally.aggregated, aggregated);
	traced_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unset_strings_leave_the_defaults),
		cmocka_unit_test(test_an_unset_local_key_is_the_message),
		cmocka_unit_test(test_empty_strings_are_chosen),
		TMPDIR_TEST(test_a_trace_has_the_defaults),
	};

	return cmocka_run_group_tests_name("recorder: functions that leave strings unset", tests, NULL, NULL);
}
