/* What evrec_broadcaster_explain tells of the story of semantics 8, of keys, of causes; and that it is bounded. */
#include "books.h"

#include "base/bucket.h"

struct fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	int64_t now;
	int status; /* of the sink's answers */
};

static void answer(void *ctx, const evrec_event *event, evrec_answer *a)
{
	(void)event;
	a->status = ((struct fixture *)ctx)->status;
}

static void open_fixture(struct fixture *f, size_t max_pending, const evrec_correlator_options *correlator)
{
	const evrec_sink_ops ops = { .create = answer };
	evrec_broadcaster_options options;
	evrec_limits limits;
	evrec_sink *sink;

	*f = (struct fixture){ .clock = evrec_clock_fake(T0), .now = T0, .status = 201 };
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, EVREC_STR("controller"), EVREC_STR("node-1"), NULL);
	evrec_limits_init(&limits);
	limits.max_pending = max_pending;
	sink = evrec_sink_new(&ops, f, &limits, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(f->b, sink, correlator, NULL));
	evrec_sink_release(sink);
}

static void close_fixture(struct fixture *f)
{
	check_whole_way(f->b);
	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_clock_release(f->clock);
}

static void record(struct fixture *f, const evrec_reference *object, const char *reason, const char *note)
{
	const evrec_emit what = { .regarding = object,
		                  .type = EVREC_STR("Normal"),
		                  .reason = str_from(reason),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(emit(f->r, f->b, &what), 0);
}

static void pass(struct fixture *f, int64_t seconds)
{
	f->now += seconds * EVREC_SECOND;
	evrec_clock_set(f->clock, f->now);
}

/* What was told, copied, with its strings. */
struct told {
	evrec_suppressed what[8];
	char strings[8][4][256];
	size_t len;
	size_t wanted; /* then no more; 0: all */
};

static evrec_str keep(char *to, evrec_str s)
{
	(void)snprintf(to, 256, "%.*s", (int)s.len, s.data);
	return str_from(to);
}

static bool note_down(void *ctx, const evrec_suppressed *what)
{
	struct told *told = ctx;
	evrec_suppressed *copy = &told->what[told->len];
	char(*strings)[256] = told->strings[told->len];

	assert_true(told->len < 8);
	*copy = *what;
	copy->reason = keep(strings[0], what->reason);
	copy->message = keep(strings[1], what->message);
	copy->regarding.name = keep(strings[2], what->regarding.name);
	copy->spam_key = keep(strings[3], what->spam_kind == EVREC_KEY_CUSTOM ? what->spam_key : EVREC_STR(""));
	told->len++;
	return told->len != told->wanted;
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

static void test_the_cronjob(void **state)
{
	struct told told = { 0 };
	struct fixture f;
	char note[64];

	(void)state;
	open_fixture(&f, 100, NULL);
	for (unsigned minute = 1; minute <= 20; minute++) {
		(void)snprintf(note, sizeof(note), "Created job hello-%u", minute);
		record(&f, &cronjob, "SuccessfulCreate", note);
		pass(&f, 10);
		(void)snprintf(note, sizeof(note), "Saw completed job: hello-%u", minute);
		record(&f, &cronjob, "SawCompletedJob", note);
		poll_once(f.b);
		pass(&f, 50);
	}
	evrec_broadcaster_explain(f.b, 0, &cronjob, note_down, &told);
	assert_int_equal(told.len, 4);
	/* By stage, the latest first: both reasons are told as aggregates from the tenth message on. */
	assert_int_equal(told.what[0].stage, EVREC_STAGE_AGGREGATED);
	assert_int_equal(told.what[0].cause, EVREC_CAUSES);
	assert_int_equal(told.what[2].stage, EVREC_STAGE_RATE_LIMITED);
	assert_str(told.what[2].reason, "SawCompletedJob");
	assert_str(told.what[2].message, "(combined from similar events): Saw completed job: hello-20");
	assert_str(told.what[3].reason, "SuccessfulCreate");
	assert_int_equal(told.what[2].count + told.what[3].count, check_books(f.b).rate_limited);
	assert_int_equal(told.what[2].last, f.now - 50 * EVREC_SECOND);
	assert_true(told.what[2].first < told.what[2].last && told.what[2].first > T0);
	/* 25 tokens, and one every 300 s: three of these by the time of the last event. */
	assert_int_equal(check_books(f.b).rate_limited, 40 - 28);
	assert_true(told.what[2].tokens > 0.99 && told.what[2].tokens < 1.01);
	assert_int_equal(told.what[2].spam_kind, EVREC_KEY_DEFAULT);
	assert_true(told.what[2].next_token >= 0 && told.what[2].next_token <= EVREC_SECOND);
	close_fixture(&f);
}

/* What it says of the next token is so, to the nanosecond. */
static void test_the_next_token(void **state)
{
	struct told told = { 0 };
	struct fixture f;

	(void)state;
	open_fixture(&f, 100, NULL);
	for (int i = 0; i < 26; i++) {
		record(&f, &cronjob, "R", "m");
	}
	pass(&f, 100);
	evrec_broadcaster_explain(f.b, 0, &cronjob, note_down, &told);
	assert_true(told.what[0].tokens > 0.33 && told.what[0].tokens < 0.34);
	assert_true(told.what[0].next_token > 199 * EVREC_SECOND && told.what[0].next_token < 201 * EVREC_SECOND);
	evrec_clock_set(f.clock, f.now + told.what[0].next_token - EVREC_SECOND / 1000);
	record(&f, &cronjob, "R", "m");
	assert_int_equal(check_books(f.b).rate_limited, 2);
	evrec_clock_set(f.clock, f.now + told.what[0].next_token);
	record(&f, &cronjob, "R", "m");
	assert_int_equal(check_books(f.b).rate_limited, 2);
	close_fixture(&f);
}

static void test_of_one_object(void **state)
{
	evrec_correlator_options correlator;
	evrec_reference other = cronjob, asked = { .kind = cronjob.kind, .name = cronjob.name, .ns = cronjob.ns };
	struct told told = { 0 };
	struct fixture f;

	(void)state;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.qps = 0;
	open_fixture(&f, 100, &correlator);
	other.uid = EVREC_STR("c-2");
	for (int i = 0; i < 3; i++) {
		record(&f, &cronjob, "R", "m");
		record(&f, &other, "R", "m");
	}
	evrec_broadcaster_explain(f.b, 0, &cronjob, note_down, &told);
	assert_int_equal(told.len, 1);
	assert_int_equal(told.what[0].count, 2);
	assert_int_equal(told.what[0].next_token, INT64_MAX);
	told.len = 0;
	evrec_broadcaster_explain(f.b, 0, &asked, note_down, &told); /* of any uid */
	assert_int_equal(told.len, 2);
	asked.api_version = EVREC_STR("v1");
	told.len = 0;
	evrec_broadcaster_explain(f.b, 0, &asked, note_down, &told);
	assert_int_equal(told.len, 0);
	told.wanted = 1;
	evrec_broadcaster_explain(f.b, 0, NULL, note_down, &told);
	assert_int_equal(told.len, 1);
	evrec_broadcaster_explain(f.b, 1, NULL, note_down, &told); /* no such sink */
	assert_int_equal(told.len, 1);
	close_fixture(&f);
}

static void test_drops_by_cause(void **state)
{
	const evrec_reference second = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("second") };
	struct told told = { 0 };
	struct fixture f;

	(void)state;
	open_fixture(&f, 1, NULL);
	f.status = 422;
	record(&f, &cronjob, "R", "m");
	record(&f, &cronjob, "R", "m");
	record(&f, &second, "R", "no room");
	poll_once(f.b);
	evrec_broadcaster_explain(f.b, 0, NULL, note_down, &told);
	assert_int_equal(told.len, 2);
	assert_int_equal(told.what[0].stage, EVREC_STAGE_DROPPED);
	assert_int_equal(told.what[0].cause, EVREC_CAUSE_QUEUE_FULL);
	assert_str(told.what[0].regarding.name, "second");
	assert_str(told.what[0].message, "no room");
	assert_int_equal(told.what[1].cause, EVREC_CAUSE_REJECTED);
	assert_str(told.what[1].regarding.name, "hello");
	assert_int_equal(told.what[1].count, 2);
	close_fixture(&f);
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

static void test_keys_that_callbacks_choose(void **state)
{
	evrec_correlator_options correlator;
	struct told told = { 0 };
	struct fixture f;

	(void)state;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.spam_key_func = by_reason;
	correlator.key_func = by_kind;
	correlator.lru_cache_size = 1;
	open_fixture(&f, 100, &correlator);
	record(&f, &cronjob, "A", "m");
	record(&f, &cronjob, "A", "m");
	evrec_broadcaster_explain(f.b, 0, NULL, note_down, &told);
	assert_int_equal(told.what[0].spam_kind, EVREC_KEY_CUSTOM);
	assert_str(told.what[0].spam_key, "A");
	assert_int_equal(told.what[0].aggregate_kind, EVREC_KEY_CUSTOM);
	assert_true(told.what[0].tokens < 1);
	/* Once the bucket is forgotten, so is its key: the next event finds a full one. */
	record(&f, &cronjob, "B", "m");
	told.len = 0;
	evrec_broadcaster_explain(f.b, 0, NULL, note_down, &told);
	assert_int_equal(told.what[0].spam_kind, EVREC_KEY_UNKNOWN);
	assert_true(told.what[0].tokens >= 1);
	assert_int_equal(told.what[0].next_token, 0);
	close_fixture(&f);
}

static bool count(void *ctx, const evrec_suppressed *what)
{
	assert_true(what->count > 0);
	++*(unsigned *)ctx;
	return true;
}

/* However many objects there are, the latest are remembered; and those again and again cost no memory. */
static void test_bounded(void **state)
{
	evrec_correlator_options correlator;
	struct unit_memory memory = { 0, 0 };
	struct told told = { .wanted = 1 };
	evrec_reference object = cronjob;
	struct fixture f;
	unsigned n = 0;
	char name[32];

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1;
	correlator.qps = 0;
	open_fixture(&f, 10000, &correlator);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%04d", i);
		object.name = str_from(name);
		record(&f, &object, "R", "m");
		record(&f, &object, "R", "m");
	}
	evrec_broadcaster_explain(f.b, 0, NULL, count, &n);
	assert_int_equal(n, 128);
	evrec_broadcaster_explain(f.b, 0, NULL, note_down, &told);
	assert_str(told.what[0].regarding.name, "n0999");
	memory.calls = 0;
	for (int i = 0; i < 1000; i++) {
		record(&f, &object, "R", "m");
	}
	assert_int_equal(memory.calls, 0);
	close_fixture(&f);
	evrec_set_allocator(NULL, NULL);
}

static void test_bucket(void **state)
{
	struct bucket b;

	(void)state;
	bucket_fill(&b, 2, T0);
	assert_int_equal(bucket_wait(&b, 2, 0.5, T0), 0);
	assert_true(bucket_take(&b, 2, 0.5, T0) && bucket_take(&b, 2, 0.5, T0));
	assert_int_equal(bucket_wait(&b, 2, 0.5, T0), 2 * EVREC_SECOND);
	assert_int_equal(bucket_wait(&b, 2, 0.5, T0 + EVREC_SECOND), EVREC_SECOND);
	assert_int_equal(bucket_wait(&b, 2, 0.5, T0 - EVREC_SECOND), 2 * EVREC_SECOND);
	assert_int_equal(bucket_wait(&b, 2, 0, T0), INT64_MAX);
	assert_int_equal(bucket_wait(&b, 2, 1e-300, T0), INT64_MAX);
	assert_true(bucket_tokens(&b, 2, 0.5, T0 + 3600 * EVREC_SECOND) == 2.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_cronjob),
		cmocka_unit_test(test_the_next_token),
		cmocka_unit_test(test_of_one_object),
		cmocka_unit_test(test_drops_by_cause),
		cmocka_unit_test(test_keys_that_callbacks_choose),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
