/* Series: what servers answer, earlier processes, tokens, callbacks, and the clock. */
#include "series_fixture.h"

#define S EVREC_SECOND

static void test_an_answer_sets_name_and_base(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	struct observed *o;
	uint64_t handle;

	(void)state;
	series_setup(&f, &options, NULL);
	handle = series_see(&f, "a", "m", 0)->handle;
	series_answered(f.s, handle, f.o.name, 0);
	series_answered(f.s, handle, EVREC_STR("a.renamed"), 7);
	series_answered(f.s, handle, EVREC_STR(""), 0);
	series_answered(f.s, handle + 1, EVREC_STR("other"), 9);
	series_answered(f.s, 0, EVREC_STR("other"), 9);
	o = series_see(&f, "a", "m", 1);
	assert_str(o->name, "a.renamed");
	assert_true(o->count == 2 && o->base == 7 && o->first == T0 && o->patch && o->due == 0);
	assert_string_equal(f.told[0].name, "a.renamed");
	series_check_told(&f, "Ongoing a 9");
	series_teardown(&f);
}

static void test_30_s_after_a_dropped_create_it_is_made_again(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	struct observed *o;
	uint64_t handle;

	(void)state;
	series_setup(&f, &options, NULL);
	handle = series_see(&f, "a", "m", 0)->handle;
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + S);
	o = series_see(&f, "a", "m", 31 * S - 1);
	assert_true(!o->patch && o->count == 2 && o->finishes && o->due == T0 + 720 * S && o->why == EVREC_SERIES);
	series_check_told(&f, "Ongoing a 2");
	o = series_see(&f, "a", "m", 31 * S);
	assert_true(!o->patch && o->count == 3 && o->due == 0 && !o->finishes && o->why == EVREC_NEW);
	assert_true(o->handle == handle && o->first == T0);
	o = series_see(&f, "a", "m", 32 * S);
	assert_true(o->patch && o->due != 0);
	/* The second write was dropped as well. */
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + 40 * S);
	assert_true(series_see(&f, "a", "m", 70 * S - 1)->due != 0);
	assert_true(series_see(&f, "a", "m", 70 * S)->due == 0);
	/* The deferred patch created the event: then a drop costs one count, and not the event. */
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + 70 * S);
	series_answered(f.s, handle, EVREC_STR(""), 0);
	assert_true(series_see(&f, "a", "m", 200 * S)->patch);
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + 200 * S);
	o = series_see(&f, "a", "m", 300 * S);
	assert_true(o->patch && o->due != 0 && o->count == 8);
	series_dropped(f.s, handle + 1, EVREC_CAUSE_REJECTED, T0);
	/* A single event. */
	handle = series_see(&f, "b", "m", 300 * S)->handle;
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + 300 * S);
	o = series_see(&f, "b", "m", 330 * S);
	assert_true(!o->patch && o->count == 2);
	series_check_told(&f, "Ongoing b 2");
	/* The outbox had no room: the next one is not deferred. */
	series_dropped(f.s, handle, EVREC_CAUSE_QUEUE_FULL, T0 + 330 * S);
	o = series_see(&f, "b", "m", 330 * S);
	assert_true(!o->patch && o->count == 3 && o->due == 0);
	series_teardown(&f);
}

static evrec_fields written(const char *object, int32_t count)
{
	evrec_fields e = pod_event(object, "R", "m", T0 - 100 * S);

	e.component = EVREC_STR("");
	e.name = EVREC_STR("x.1");
	e.first = e.last = EVREC_UNSET;
	e.event_time = T0 - 100 * S;
	e.count = 0;
	e.series_count = count;
	e.series_last = count == 0 ? EVREC_UNSET : T0 - 50 * S;
	return e;
}

static void test_an_earlier_series_goes_on(void **state)
{
	const evrec_series_options options = series_options(10);
	evrec_fields e = written("a", 5);
	struct series_fixture f;
	evrec_series_stats stats;
	struct observed *o;

	(void)state;
	series_setup(&f, &options, NULL);
	assert_true(series_resume(f.s, &e, T0 + S));
	assert_true(f.told[0].event_time == T0 - 100 * S && f.told[0].last == T0 - 50 * S);
	assert_string_equal(f.told[0].name, "x.1");
	series_check_told(&f, "Unknown a 5");
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 1 && stats.ongoing == 1 && stats.begun == 1);
	assert_true(series_resume(f.s, &e, T0 + S)); /* it is known */
	series_check_told(&f, "");
	o = series_see(&f, "a", "m", 2 * S);
	assert_true(o->patch && o->due == 0 && o->count == 1 && o->base == 5 && o->first == T0 - 100 * S);
	assert_str(o->name, "x.1");
	series_check_told(&f, "Ongoing a 6");
	o = series_see(&f, "a", "m", 3 * S);
	assert_true(o->patch && o->due == T0 + 720 * S && o->count == 2 && o->base == 5);
	series_get_stats(f.s, &stats);
	assert_true(stats.ongoing == 1 && stats.begun == 1);
	/* It is on the server, so a drop does not mean that it must be created. */
	series_dropped(f.s, o->handle, EVREC_CAUSE_REJECTED, T0 + 3 * S);
	assert_true(series_see(&f, "a", "m", 100 * S)->patch);
	series_teardown(&f);
}

static void test_an_earlier_series_ends_unseen(void **state)
{
	const evrec_series_options options = series_options(2);
	evrec_fields a = written("a", 5), b = written("b", 0), c = written("c", 3), old = written("d", 0);
	struct series_fixture f;
	evrec_series_stats stats;
	struct observed *o;

	(void)state;
	series_setup(&f, &options, NULL);
	assert_true(series_resume(f.s, &a, T0));
	assert_true(series_resume(f.s, &b, T0)); /* a single event: not told */
	assert_true(series_resume(f.s, &c, T0)); /* there is no room */
	series_check_told(&f, "Unknown a 5");
	o = series_see(&f, "b", "m", S);
	assert_true(o->patch && o->due == 0 && o->count == 1 && o->base == 1);
	series_check_told(&f, "Ongoing b 2");
	series_tick(f.s, T0 + 720 * S - 1, SIZE_MAX);
	series_check_told(&f, "");
	series_tick(f.s, T0 + 720 * S, SIZE_MAX);
	assert_true(f.told[0].untold && !f.told[0].evicted);
	series_check_told(&f, "Finished a 5, Finished b 2");
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 0 && stats.begun == 2 && stats.finished == 2);
	/* An event in the old style has its count and times in other fields. */
	old.count = 4;
	old.first = T0 - 7 * S;
	old.event_time = EVREC_UNSET;
	assert_true(series_resume(f.s, &old, T0 + 800 * S));
	assert_int_equal(f.told[0].event_time, T0 - 7 * S);
	series_check_told(&f, "Unknown d 4");
	series_teardown(&f);
}

static evrec_correlator_options limits(unsigned burst)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.burst_size = burst;
	return options;
}

/* A create without a token is skipped, and the next occurrence tries again. */
static void test_creates_take_tokens(void **state)
{
	evrec_series_options options = series_options(10);
	const evrec_correlator_options one = limits(1);
	evrec_suppressed what = { .count = 1 };
	struct series_fixture f;
	struct observed *o;
	evrec_fields e = pod_event("a", "Q", "m", T0);

	(void)state;
	options.rate_limit = true;
	series_setup(&f, &options, &one);
	o = series_see(&f, "a", "m", 0);
	assert_true(!o->skip && o->why == EVREC_NEW && o->bucket != 0);
	/* Another reason of the same object. A token comes after 300 s, and then the event is created as a series. */
	o = series_see_event(&f, &e, T0);
	assert_true(o->skip && !o->patch && o->why == EVREC_RATE_LIMITED && o->count == 1 && o->due == 0);
	series_explain(f.s, o->bucket, T0 + 150 * S, &what);
	assert_true(what.tokens > 0.49 && what.tokens < 0.51 && what.spam_kind == EVREC_KEY_DEFAULT);
	assert_true(what.next_token > 149 * S && what.next_token < 151 * S);
	e.note = EVREC_STR("n");
	o = series_see_event(&f, &e, T0 + 200 * S);
	assert_true(o->skip && o->count == 2 && !o->merged);
	series_check_told(&f, "");
	o = series_see_event(&f, &e, T0 + 301 * S);
	assert_true(!o->skip && !o->patch && o->why == EVREC_NEW && o->count == 3 && o->first == T0);
	series_check_told(&f, "Ongoing a 3");
	/* After a drop an occurrence without a token is deferred, as those before it. */
	series_dropped(f.s, o->handle, EVREC_CAUSE_REJECTED, T0 + 301 * S);
	o = series_see_event(&f, &e, T0 + 331 * S);
	assert_true(!o->skip && !o->patch && o->due != 0);
	o = series_see_event(&f, &e, T0 + 602 * S);
	assert_true(!o->skip && !o->patch && o->due == 0 && o->count == 5);
	series_teardown(&f);
}

/* An empty bucket, and a clock that is set back by an hour. */
static void test_clock_that_is_set_back(void **state)
{
	evrec_series_options options = series_options(10);
	const evrec_correlator_options one = limits(1);
	const int64_t back = -3600 * S;

	(void)state;
	options.rate_limit = true;
	for (int real = 0; real < 2; real++) {
		struct series_fixture f;
		evrec_fields e = pod_event("a", "Q", "m", T0);

		series_setup(&f, &options, &one);
		if (real) {
			series_use_real_clock(f.s);
		}
		assert_false(series_see(&f, "a", "m", 0)->skip);
		assert_true(series_see_event(&f, &e, T0 + back)->skip);
		assert_true(series_see_event(&f, &e, T0 + back + 299 * S)->skip);
		assert_int_equal(series_see_event(&f, &e, T0 + back + 301 * S)->skip, !real);
		series_check_told(&f, real ? "Ongoing a 3" : "");
		series_teardown(&f);
	}
}

/* The patch that begins a series, without a token, is deferred as the further ones are: its count is written in time. */
static void test_a_series_begins_without_a_token(void **state)
{
	evrec_series_options options = series_options(10);
	const evrec_correlator_options one = limits(1);
	evrec_fields old = written("old", 5);
	struct series_fixture f;
	struct observed *o;

	(void)state;
	options.rate_limit = true;
	series_setup(&f, &options, &one);
	(void)series_see(&f, "a", "m", 0);
	o = series_see(&f, "a", "n", 1);
	assert_true(!o->skip && o->patch && o->why == EVREC_SERIES && o->count == 2 && o->bucket != 0 && o->merged);
	assert_true(o->due == T0 + 720 * S && o->finishes);
	series_check_told(&f, "Ongoing a 2");
	/* A token that has come meanwhile is not needed. */
	o = series_see(&f, "a", "n", 301 * S);
	assert_true(!o->skip && o->patch && o->count == 3 && o->due == T0 + 720 * S);
	series_tick(f.s, T0 + 720 * S, SIZE_MAX);
	assert_false(f.told[0].untold);
	series_check_told(&f, "Finished a 3");
	/* A series of an earlier process, of the same source and object as an event that takes the token. */
	assert_true(series_resume(f.s, &old, T0 + 720 * S));
	old.reason = EVREC_STR("Q");
	assert_false(series_see_event(&f, &old, T0 + 720 * S)->skip);
	old.reason = EVREC_STR("R");
	o = series_see_event(&f, &old, T0 + 720 * S);
	assert_true(!o->skip && o->patch && o->count == 1 && o->base == 5 && o->due == T0 + 1440 * S);
	series_check_told(&f, "Unknown old 5, Ongoing old 6");
	series_teardown(&f);
}

static void test_without_the_option_there_is_no_limit(void **state)
{
	const evrec_series_options options = series_options(100);
	const evrec_correlator_options one = limits(1);
	evrec_suppressed what = { .count = 1 };
	struct series_fixture f;

	(void)state;
	series_setup(&f, &options, &one);
	(void)series_see(&f, "a", "m", 0);
	assert_false(series_see(&f, "a", "m", 0)->skip);
	series_check_told(&f, "Ongoing a 2");
	series_explain(f.s, f.o.bucket, T0, &what);
	assert_true(what.tokens == 1.0 && what.next_token == 0);
	series_teardown(&f);
}

/* ---- callbacks ---- */

static struct series *entered;

static void enter(void)
{
	evrec_fields e = pod_event("z", "R", "m", T0);
	struct keys keys = { .made = false };
	struct observed o;

	assert_true(keys_make(&keys, &e));
	assert_int_equal(series_observe(entered, &e, &keys, T0, &o), EVREC_EINVALID);
	series_tick(entered, INT64_MAX, SIZE_MAX);
	assert_false(series_resume(entered, &e, T0));
	keys_free(&keys);
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	assert_true(event->name.len != 0);
	enter();
	*key = EVREC_STR("all");
	return !str_eq(event->note, EVREC_STR("fail"));
}

static void on_told(void *ctx, const struct series_told *told)
{
	series_answered(entered, told->handle, EVREC_STR("no"), 3);
	series_dropped(entered, told->handle, EVREC_CAUSE_REJECTED, T0);
	enter();
	++*(unsigned *)ctx;
}

static void test_callbacks_cannot_enter(void **state)
{
	evrec_series_options options = series_options(1);
	evrec_correlator_options one = limits(3);
	evrec_suppressed what = { .count = 1 };
	struct series_fixture f = { .s = NULL };
	evrec_series_stats stats;
	unsigned told = 0;

	(void)state;
	options.rate_limit = true;
	one.spam_key_func = choose_spam_key;
	entered = f.s = series_new(&options, &one, T0, on_told, &told);
	(void)series_see(&f, "a", "m", 0);
	(void)series_see(&f, "a", "m", 1);
	assert_int_equal(told, 1);
	(void)series_see(&f, "a", "m", 2);
	assert_true(f.o.patch && f.o.base == 0 && f.o.name.len > 2);
	(void)series_see(&f, "b", "m", 3); /* evicts a */
	assert_int_equal(told, 2);
	series_explain(f.s, f.o.bucket, T0, &what);
	assert_int_equal(what.spam_kind, EVREC_KEY_CUSTOM);
	assert_str(what.spam_key, "all");
	assert_true(series_see(&f, "c", "m", 4)->skip); /* one bucket for all */
	assert_false(series_see(&f, "d", "fail", 5)->skip);
	series_explain(f.s, f.o.bucket, T0, &what);
	assert_int_equal(what.spam_kind, EVREC_KEY_DEFAULT);
	assert_false(series_see(&f, "d", "fail", 6)->skip);
	series_tick(f.s, T0 + 720 * S, SIZE_MAX);
	assert_int_equal(told, 4);
	series_get_stats(f.s, &stats);
	assert_int_equal(stats.series, 0);
	assert_int_equal(series_callback_errors(f.s), 2);
	series_teardown(&f);
}

/* ---- time ---- */

static void test_the_latest_observation_sets_the_time(void **state)
{
	const evrec_series_options options = series_options(10);
	evrec_fields e = pod_event("a", "R", "m", T0 + 100 * S);
	struct series_fixture f;

	(void)state;
	series_setup(&f, &options, NULL);
	assert_int_equal(series_see_event(&f, &e, T0)->last, T0 + 100 * S);
	e.first = e.last = T0 + 50 * S;
	assert_int_equal(series_see_event(&f, &e, T0 + S)->last, T0 + 50 * S);
	assert_int_equal(f.o.first, T0 + 100 * S);
	e.first = e.last = EVREC_UNSET;
	assert_int_equal(series_see_event(&f, &e, T0 + 101 * S)->last, T0 + 101 * S);
	assert_int_equal(f.told[0].last, T0 + 50 * S);
	series_check_told(&f, "Ongoing a 2");
	/* An event that happened long ago is not old. */
	e.regarding.name = EVREC_STR("b");
	e.first = e.last = T0 - 5000 * S;
	(void)series_see_event(&f, &e, T0 + 101 * S);
	assert_int_equal(series_see_event(&f, &e, T0 + 102 * S)->count, 2);
	series_check_told(&f, "Ongoing b 2");
	series_teardown(&f);
}

static void test_clock_is_set_back(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	struct observed *o;

	(void)state;
	series_setup(&f, &options, NULL);
	(void)series_see(&f, "a", "m", 1000 * S);
	series_dropped(f.s, series_see(&f, "b", "m", 1000 * S)->handle, EVREC_CAUSE_REJECTED, T0 + 1000 * S);
	o = series_see(&f, "c", "m", -1 * S);
	(void)series_see(&f, "c", "m", -1 * S);
	o = series_see(&f, "c", "m", -1 * S);
	assert_int_equal(o->due, T0); /* the heartbeat; ticks are before the start, too */
	assert_int_equal(series_next_due(f.s), T0 + 360 * S);
	assert_false(series_see(&f, "b", "m", 29 * S)->patch); /* 30 s after the drop */
	series_check_told(&f, "Ongoing c 2, Ongoing b 2");
	series_tick(f.s, T0 + 360 * S, SIZE_MAX);
	series_check_told(&f, "Finished c 3");
	series_tick(f.s, T0 + 720 * S, SIZE_MAX);
	series_check_told(&f, "Finished b 2");
	(void)series_see(&f, "d", "m", -360 * S);
	assert_int_equal(series_next_due(f.s), T0 + 360 * S);
	series_teardown(&f);
}

/* Ticks beyond what 64 bits hold never come. */
static void test_ends_of_time(void **state)
{
	evrec_series_options options = series_options(10);
	evrec_fields e = pod_event("a", "R", "m", T0);
	struct series_fixture f;

	(void)state;
	options.refresh_interval = options.finish_time = INT64_MAX;
	series_setup(&f, &options, NULL);
	(void)series_see_event(&f, &e, INT64_MAX);
	(void)series_see_event(&f, &e, INT64_MAX);
	series_check_told(&f, "Ongoing a 2");
	assert_int_equal(series_see_event(&f, &e, INT64_MAX)->due, INT64_MAX);
	assert_true(f.o.finishes);
	(void)series_see_event(&f, &e, INT64_MIN + 1);
	assert_int_equal(f.o.count, 4);
	series_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_sets_name_and_base),
		cmocka_unit_test(test_30_s_after_a_dropped_create_it_is_made_again),
		cmocka_unit_test(test_an_earlier_series_goes_on),
		cmocka_unit_test(test_an_earlier_series_ends_unseen),
		cmocka_unit_test(test_creates_take_tokens),
		cmocka_unit_test(test_a_series_begins_without_a_token),
		cmocka_unit_test(test_clock_that_is_set_back),
		cmocka_unit_test(test_without_the_option_there_is_no_limit),
		cmocka_unit_test(test_callbacks_cannot_enter),
		cmocka_unit_test(test_the_latest_observation_sets_the_time),
		cmocka_unit_test(test_clock_is_set_back),
		cmocka_unit_test(test_ends_of_time),
	};

	return cmocka_run_group_tests_name("series_answers", tests, NULL, NULL);
}
