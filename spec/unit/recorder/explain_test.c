/* evrec_broadcaster_explain: suppressed events with their stage, cause, keys and tokens; bounded in number. */
#include "stats_invariants.h"

#include "base/token_bucket.h"

struct explain_fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	int64_t now;
	int status; /* of the sink's answers */
};

static void answer(void *ctx, const evrec_event *event, evrec_answer *a)
{
	(void)event;
	a->status = ((struct explain_fixture *)ctx)->status;
}

static void explain_fixture_open(struct explain_fixture *f, size_t max_pending,
                                 const evrec_correlator_options *correlator)
{
	const evrec_sink_ops ops = { .create = answer };
	evrec_broadcaster_options options;
	evrec_sink_options common;
	evrec_sink *sink;

	*f = (struct explain_fixture){ .clock = evrec_clock_fake(T0), .now = T0, .status = 201 };
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(
		f->b, &(evrec_recorder_options){ .component = EVREC_STR("controller"), .host = EVREC_STR("node-1") },
		NULL);
	evrec_sink_options_init(&common);
	common.limits.max_pending = max_pending;
	sink = evrec_sink_new(&ops, f, &common, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(f->b, sink, correlator, NULL));
	evrec_sink_release(sink);
}

static void explain_fixture_close(struct explain_fixture *f)
{
	stats_check_end_to_end(f->b);
	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_clock_release(f->clock);
}

static void record(struct explain_fixture *f, const evrec_reference *object, const char *reason, const char *note)
{
	const evrec_emit emit = { .regarding = object,
		                  .type = EVREC_STR("Normal"),
		                  .reason = str_from(reason),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(checked_emit(f->r, f->b, &emit), 0);
}

static void advance(struct explain_fixture *f, int64_t seconds)
{
	f->now += seconds * EVREC_SECOND;
	evrec_clock_set(f->clock, f->now);
}

/* Copies of the explained events, with their strings. */
struct explained {
	evrec_suppressed events[8];
	char strings[8][4][256];
	size_t len;
	size_t wanted; /* stop after so many; 0: never */
};

static evrec_str copy_str(char *to, evrec_str s)
{
	(void)snprintf(to, 256, "%.*s", (int)s.len, s.data);
	return str_from(to);
}

static bool copy_suppressed(void *ctx, const evrec_suppressed *suppressed)
{
	struct explained *explained = ctx;
	evrec_suppressed *copy = &explained->events[explained->len];
	char(*strings)[256] = explained->strings[explained->len];

	assert_true(explained->len < 8);
	*copy = *suppressed;
	copy->reason = copy_str(strings[0], suppressed->reason);
	copy->message = copy_str(strings[1], suppressed->message);
	copy->regarding.name = copy_str(strings[2], suppressed->regarding.name);
	copy->spam_key =
		copy_str(strings[3], suppressed->spam_kind == EVREC_KEY_CUSTOM ? suppressed->spam_key : EVREC_STR(""));
	explained->len++;
	return explained->len != explained->wanted;
}

#define LITERAL(text)                                                                                                  \
	{                                                                                                              \
		text, sizeof(text) - 1                                                                                 \
	}

static const evrec_reference cronjob = { .kind = LITERAL("CronJob"),
	                                 .api_version = LITERAL("batch/v1"),
	                                 .name = LITERAL("hello"),
	                                 .ns = LITERAL("default"),
	                                 .uid = LITERAL("c-1") };

static void test_cronjob_is_aggregated_and_rate_limited(void **state)
{
	struct explained explained = { 0 };
	struct explain_fixture f;
	char note[64];

	(void)state;
	explain_fixture_open(&f, 100, NULL);
	for (unsigned minute = 1; minute <= 20; minute++) {
		(void)snprintf(note, sizeof(note), "Created job hello-%u", minute);
		record(&f, &cronjob, "SuccessfulCreate", note);
		advance(&f, 10);
		(void)snprintf(note, sizeof(note), "Saw completed job: hello-%u", minute);
		record(&f, &cronjob, "SawCompletedJob", note);
		checked_poll(f.b);
		advance(&f, 50);
	}
	evrec_broadcaster_explain(f.b, 1, &cronjob, copy_suppressed, &explained);
	assert_int_equal(explained.len, 4);
	/* Ordered by stage, latest first: both reasons are aggregates from the tenth message on. */
	assert_int_equal(explained.events[0].stage, EVREC_STAGE_AGGREGATED);
	assert_int_equal(explained.events[0].cause, EVREC_CAUSES);
	assert_string_equal(evrec_cause_name(explained.events[0].cause), "");
	assert_int_equal(explained.events[2].stage, EVREC_STAGE_RATE_LIMITED);
	assert_str(explained.events[2].reason, "SawCompletedJob");
	assert_str(explained.events[2].message, "(combined from similar events): Saw completed job: hello-20");
	assert_str(explained.events[3].reason, "SuccessfulCreate");
	assert_int_equal(explained.events[2].count + explained.events[3].count,
	                 stats_check_equations(f.b).rate_limited);
	assert_int_equal(explained.events[2].last, f.now - 50 * EVREC_SECOND);
	assert_true(explained.events[2].first < explained.events[2].last && explained.events[2].first > T0);
	/* 25 tokens, and one every 300 s: three of these by the time of the last event. */
	assert_int_equal(stats_check_equations(f.b).rate_limited, 40 - 28);
	assert_true(explained.events[2].tokens > 0.99 && explained.events[2].tokens < 1.01);
	assert_int_equal(explained.events[2].spam_kind, EVREC_KEY_DEFAULT);
	assert_true(explained.events[2].next_token >= 0 && explained.events[2].next_token <= EVREC_SECOND);
	explain_fixture_close(&f);
}

/* next_token is exact to the millisecond: an event before it is limited, one after it is not. */
static void test_next_token_is_exact(void **state)
{
	struct explained explained = { 0 };
	struct explain_fixture f;

	(void)state;
	explain_fixture_open(&f, 100, NULL);
	for (int i = 0; i < 26; i++) {
		record(&f, &cronjob, "R", "m");
	}
	advance(&f, 100);
	evrec_broadcaster_explain(f.b, 1, &cronjob, copy_suppressed, &explained);
	assert_true(explained.events[0].tokens > 0.33 && explained.events[0].tokens < 0.34);
	assert_true(explained.events[0].next_token > 199 * EVREC_SECOND &&
	            explained.events[0].next_token < 201 * EVREC_SECOND);
	evrec_clock_set(f.clock, f.now + explained.events[0].next_token - EVREC_SECOND / 1000);
	record(&f, &cronjob, "R", "m");
	assert_int_equal(stats_check_equations(f.b).rate_limited, 2);
	evrec_clock_set(f.clock, f.now + explained.events[0].next_token);
	record(&f, &cronjob, "R", "m");
	assert_int_equal(stats_check_equations(f.b).rate_limited, 2);
	explain_fixture_close(&f);
}

static void test_one_object_is_selected(void **state)
{
	evrec_correlator_options correlator;
	evrec_reference other = cronjob, asked = { .kind = cronjob.kind, .name = cronjob.name, .ns = cronjob.ns };
	struct explained explained = { 0 };
	struct explain_fixture f;

	(void)state;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.qps = 0;
	explain_fixture_open(&f, 100, &correlator);
	other.uid = EVREC_STR("c-2");
	for (int i = 0; i < 3; i++) {
		record(&f, &cronjob, "R", "m");
		record(&f, &other, "R", "m");
	}
	evrec_broadcaster_explain(f.b, 1, &cronjob, copy_suppressed, &explained);
	assert_int_equal(explained.len, 1);
	assert_int_equal(explained.events[0].count, 2);
	assert_int_equal(explained.events[0].next_token, INT64_MAX);
	explained.len = 0;
	evrec_broadcaster_explain(f.b, 1, &asked, copy_suppressed, &explained); /* any uid */
	assert_int_equal(explained.len, 2);
	asked.api_version = EVREC_STR("v1");
	explained.len = 0;
	evrec_broadcaster_explain(f.b, 1, &asked, copy_suppressed, &explained);
	assert_int_equal(explained.len, 0);
	explained.wanted = 1;
	evrec_broadcaster_explain(f.b, 1, NULL, copy_suppressed, &explained);
	assert_int_equal(explained.len, 1);
	evrec_broadcaster_explain(f.b, 2, NULL, copy_suppressed, &explained); /* no such sink */
	assert_int_equal(explained.len, 1);
	explain_fixture_close(&f);
}

static void test_drops_have_their_cause(void **state)
{
	const evrec_reference second = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("second") };
	struct explained explained = { 0 };
	struct explain_fixture f;

	(void)state;
	explain_fixture_open(&f, 1, NULL);
	f.status = 422;
	record(&f, &cronjob, "R", "m");
	record(&f, &cronjob, "R", "m");
	record(&f, &second, "R", "no room");
	checked_poll(f.b);
	evrec_broadcaster_explain(f.b, 1, NULL, copy_suppressed, &explained);
	assert_int_equal(explained.len, 2);
	assert_int_equal(explained.events[0].stage, EVREC_STAGE_DROPPED);
	assert_int_equal(explained.events[0].cause, EVREC_CAUSE_QUEUE_FULL);
	assert_str(explained.events[0].regarding.name, "second");
	assert_str(explained.events[0].message, "no room");
	assert_int_equal(explained.events[1].cause, EVREC_CAUSE_REJECTED);
	assert_str(explained.events[1].regarding.name, "hello");
	assert_int_equal(explained.events[1].count, 2);
	explain_fixture_close(&f);
}

static bool by_reason(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	*key = event->reason;
	return true;
}

static bool by_kind(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	*aggregate_key = event->regarding.kind;
	*local_key = event->note;
	return true;
}

static void test_keys_of_callbacks_are_shown(void **state)
{
	evrec_correlator_options correlator;
	struct explained explained = { 0 };
	struct explain_fixture f;

	(void)state;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.spam_key_func = by_reason;
	correlator.key_func = by_kind;
	correlator.lru_cache_size = 1;
	explain_fixture_open(&f, 100, &correlator);
	record(&f, &cronjob, "A", "m");
	record(&f, &cronjob, "A", "m");
	evrec_broadcaster_explain(f.b, 1, NULL, copy_suppressed, &explained);
	assert_int_equal(explained.events[0].spam_kind, EVREC_KEY_CUSTOM);
	assert_str(explained.events[0].spam_key, "A");
	assert_int_equal(explained.events[0].aggregate_kind, EVREC_KEY_CUSTOM);
	assert_true(explained.events[0].tokens < 1);
	/* An evicted bucket has no key any more: the next event finds a full one. */
	record(&f, &cronjob, "B", "m");
	explained.len = 0;
	evrec_broadcaster_explain(f.b, 1, NULL, copy_suppressed, &explained);
	assert_int_equal(explained.events[0].spam_kind, EVREC_KEY_UNKNOWN);
	assert_true(explained.events[0].tokens >= 1);
	assert_int_equal(explained.events[0].next_token, 0);
	explain_fixture_close(&f);
}

static bool count(void *ctx, const evrec_suppressed *suppressed)
{
	assert_true(suppressed->count > 0);
	++*(unsigned *)ctx;
	return true;
}

/* The latest 128 objects are kept; further events of these allocate nothing. */
static void test_explained_objects_are_bounded(void **state)
{
	evrec_correlator_options correlator;
	struct unit_allocator memory = { 0, 0 };
	struct explained explained = { .wanted = 1 };
	evrec_reference object = cronjob;
	struct explain_fixture f;
	unsigned n = 0;
	char name[32];

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.qps = 0;
	explain_fixture_open(&f, 10000, &correlator);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%04d", i);
		object.name = str_from(name);
		record(&f, &object, "R", "m");
		record(&f, &object, "R", "m");
	}
	evrec_broadcaster_explain(f.b, 1, NULL, count, &n);
	assert_int_equal(n, 128);
	evrec_broadcaster_explain(f.b, 1, NULL, copy_suppressed, &explained);
	assert_str(explained.events[0].regarding.name, "n0999");
	memory.calls = 0;
	for (int i = 0; i < 1000; i++) {
		record(&f, &object, "R", "m");
	}
	assert_int_equal(memory.calls, 0);
	explain_fixture_close(&f);
	evrec_set_allocator(NULL, NULL);
}

static void test_bucket_wait_is_exact(void **state)
{
	struct token_bucket b;

	(void)state;
	token_bucket_fill(&b, 2, T0);
	assert_int_equal(token_bucket_wait(&b, 2, 0.5, T0), 0);
	assert_true(token_bucket_take(&b, 2, 0.5, T0) && token_bucket_take(&b, 2, 0.5, T0));
	assert_int_equal(token_bucket_wait(&b, 2, 0.5, T0), 2 * EVREC_SECOND);
	assert_int_equal(token_bucket_wait(&b, 2, 0.5, T0 + EVREC_SECOND), EVREC_SECOND);
	assert_int_equal(token_bucket_wait(&b, 2, 0.5, T0 - EVREC_SECOND), 2 * EVREC_SECOND);
	assert_int_equal(token_bucket_wait(&b, 2, 0, T0), INT64_MAX);
	assert_int_equal(token_bucket_wait(&b, 2, 1e-300, T0), INT64_MAX);
	assert_true(token_bucket_tokens(&b, 2, 0.5, T0 + 3600 * EVREC_SECOND) == 2.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cronjob_is_aggregated_and_rate_limited),
		cmocka_unit_test(test_next_token_is_exact),
		cmocka_unit_test(test_one_object_is_selected),
		cmocka_unit_test(test_drops_have_their_cause),
		cmocka_unit_test(test_keys_of_callbacks_are_shown),
		cmocka_unit_test(test_explained_objects_are_bounded),
		cmocka_unit_test(test_bucket_wait_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
