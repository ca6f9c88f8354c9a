/* Replays: what is counted for each variant, keys of fields, heartbeats of series, and nonsense. */
#include "correlations.h"
#include "counting_allocator.h"

#include "evrec_read.h"

#define HEADER "{\"evrec_trace\":1}\n"
#define POD                                                                                                            \
	"\"event\":{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"web-0\",\"namespace\":\"shop\"},"                  \
	"\"type\":\"Normal\",\"reason\":\"Started\",\"message\":\"m\"}"

#define OTHER_REASON                                                                                                   \
	"\"event\":{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"web-0\",\"namespace\":\"shop\"},"                  \
	"\"type\":\"Normal\",\"reason\":\"Pulled\",\"message\":\"m\"}"

static void add(evrec_replay *r, const char *object, const char *reason, int64_t t)
{
	evrec_fields event = pod_event(object, reason, "m", t);

	assert_int_equal(evrec_replay_add(r, &event, t, NULL), 0);
}

struct found {
	evrec_replayed_group group;
	evrec_replayed_tally tallies[EVREC_REPLAY_VARIANTS];
	const char *reason;
	size_t variants, groups;
};

static bool find(void *ctx, const evrec_replayed_group *group)
{
	struct found *found = ctx;

	found->groups++;
	if (str_eq(group->event->reason, str_from(found->reason))) {
		found->group = *group;
		memcpy(found->tallies, group->tallies, found->variants * sizeof(found->tallies[0]));
	}
	return true;
}

static void test_each_variant_has_its_tokens(void **state)
{
	evrec_replay_variant variants[2];
	evrec_replayed_variant result;
	struct found found = { .reason = "Quiet", .variants = 2 };
	evrec_replay *r;

	(void)state;
	evrec_replay_variant_init(&variants[0]);
	variants[0].correlator.burst_size = 3;
	variants[0].correlator.qps = 0;
	variants[1] = variants[0];
	variants[1].spam_key = EVREC_STR("involvedObject.name,reason");
	r = evrec_replay_new(variants, 2, NULL);
	for (int i = 0; i < 4; i++) {
		add(r, "a", "Loud", T0 + i * EVREC_SECOND);
	}
	add(r, "a", "Quiet", T0 + 70 * EVREC_SECOND);
	assert_int_equal(evrec_replay_end(r, NULL), 0);
	evrec_replay_get_variant(r, 0, &result);
	assert_int_equal(result.tally.created, 1);
	assert_int_equal(result.tally.patched, 2);
	assert_int_equal(result.tally.rate_limited, 2);
	assert_int_equal(result.peak, 3);
	assert_int_equal(result.peak_minute, T0 - T0 % (60 * EVREC_SECOND));
	evrec_replay_get_variant(r, 1, &result);
	assert_int_equal(result.tally.created, 2);
	assert_int_equal(result.tally.rate_limited, 1);
	assert_int_equal(result.buckets, 2);
	evrec_replay_each(r, find, &found);
	assert_int_equal(found.groups, 2);
	assert_int_equal(found.group.occurrences, 1);
	assert_int_equal(found.tallies[0].unseen, 1);
	assert_true(found.tallies[0].last_write == EVREC_UNSET);
	assert_int_equal(found.tallies[1].unseen, 0);
	assert_true(found.tallies[1].last_write == T0 + 70 * EVREC_SECOND);
	evrec_replay_free(r);
}

/* One a minute for 95 minutes: a create, a patch, and heartbeats after 30, 60 and 90 minutes. */
static void test_series_have_heartbeats(void **state)
{
	evrec_replay_variant variant;
	evrec_replayed_variant result;
	evrec_replay *r;

	(void)state;
	evrec_replay_variant_init(&variant);
	variant.by_series = true;
	r = evrec_replay_new(&variant, 1, NULL);
	for (int i = 0; i <= 95; i++) {
		add(r, "a", "Started", T0 + i * 60 * EVREC_SECOND);
	}
	assert_int_equal(evrec_replay_end(r, NULL), 0);
	evrec_replay_get_variant(r, 0, &result);
	assert_int_equal(result.tally.created, 1);
	assert_int_equal(result.tally.patched, 1);
	assert_int_equal(result.tally.counted, 94);
	assert_int_equal(result.heartbeats, 3);
	assert_int_equal(result.tally.unseen, 0);
	evrec_replay_free(r);
}

static void test_options_are_checked(void **state)
{
	static const char *const keys[] = { "reasons",  "involvedObject", "count",  "metadata.labels",
		                            "reason.x", "reason,,type",   "source." };
	evrec_replay_variant variant;
	evrec_error err;

	(void)state;
	evrec_replay_variant_init(&variant);
	assert_null(evrec_replay_new(&variant, 0, &err));
	unit_check_contains(err.message, "variants");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		variant.spam_key = str_from(keys[i]);
		assert_null(evrec_replay_new(&variant, 1, &err));
		assert_int_equal(err.code, EVREC_EINVALID);
		unit_check_contains(err.message, "spam_key");
	}
	variant.spam_key = EVREC_STR("metadata.labels.app.kubernetes.io/name,type");
	evrec_replay_free(evrec_replay_new(&variant, 1, &err));
	variant.correlator.burst_size = 0;
	assert_null(evrec_replay_new(&variant, 1, &err));
	unit_check_contains(err.message, "burst_size");
}

static evrec_replay *plain_replay(void)
{
	evrec_replay_variant variant;
	evrec_replay *r;

	evrec_replay_variant_init(&variant);
	r = evrec_replay_new(&variant, 1, NULL);
	assert_non_null(r);
	return r;
}

static void test_other_files_are_refused(void **state)
{
	static const char *const starts[] = { "hello\n", "{}\n", "{\"id\":1,\"t\":1," POD "}\n", "\n" };
	evrec_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		evrec_replay *r = plain_replay();

		assert_int_equal(evrec_replay_feed(r, str_from(starts[i]), &err), EVREC_EINVALID);
		evrec_replay_free(r);
	}
	{
		evrec_replay *r = plain_replay();

		assert_int_equal(evrec_replay_feed(r, EVREC_STR("{\"evrec_trace\":2}\n"), &err), EVREC_EINVALID);
		unit_check_contains(err.message, "version 2");
		evrec_replay_free(r);
	}
}

static void feed(evrec_replay *r, const char *lines)
{
	assert_int_equal(evrec_replay_feed(r, str_from(lines), NULL), 0);
}

static evrec_replayed_trace trace_of(const evrec_replay *r)
{
	evrec_replayed_trace trace;

	evrec_replay_get_trace(r, &trace);
	return trace;
}

/* An id that no line defines, a line that a crash has cut, and a second header. */
static void test_damage_is_counted(void **state)
{
	evrec_replay *r = plain_replay();

	(void)state;
	feed(r, HEADER "{\"id\":2,\"t\":1}\nnonsense\n" HEADER);
	feed(r, "{\"id\":1,\"t\":1," POD "}\n{\"id\":1,\"t\":2}\n");
	feed(r, "{\"lost\":3,\"from\":1,\"to\":2}\n{\"id\":1,\"t");
	assert_int_equal(evrec_replay_end(r, NULL), 0);
	assert_int_equal(trace_of(r).occurrences, 2);
	assert_int_equal(trace_of(r).lost, 3);
	assert_int_equal(trace_of(r).malformed, 4);
	evrec_replay_free(r);
}

/* A definition whose message is the number, with zeros up to `digits`. */
static void feed_definition(evrec_replay *r, unsigned id, unsigned message, int digits)
{
	struct buf line = { 0 };

	buf_printf(&line, "{\"id\":%u,\"t\":1,\"event\":{\"reason\":\"R\",\"message\":\"%0*u\"}}\n", id, digits,
	           message);
	feed(r, buf_cstr(&line));
	buf_free(&line);
}

/* An id keeps its event until another definition of it can be read. */
static void test_definitions_that_cannot_be_read_change_no_id(void **state)
{
	evrec_replay *r = plain_replay();

	(void)state;
	feed(r, HEADER "{\"id\":1,\"t\":1," POD "}\n");
	feed(r, "{\"id\":1,\"t\":1,\"event\":3}\n{\"id\":1,\"t\":1,\"event\":3}\n{\"id\":1,\"t\":2}\n");
	assert_int_equal(trace_of(r).malformed, 2);
	assert_int_equal(trace_of(r).occurrences, 2);
	evrec_replay_free(r);
}

/* A definition that is told again, by any id, is the same event. */
static void test_definitions_are_the_same_by_any_id(void **state)
{
	evrec_replay *r = plain_replay();
	evrec_replayed_variant variant;

	(void)state;
	feed(r, HEADER "{\"id\":1,\"t\":1," POD "}\n{\"id\":2,\"t\":1," POD "}\n{\"id\":1,\"t\":2}\n");
	evrec_replay_get_variant(r, 0, &variant);
	assert_int_equal(variant.tally.created, 1);
	assert_int_equal(variant.tally.patched, 2);
	evrec_replay_free(r);
}

/* A trace of a real clock, which was set back by an hour, and one of a fake clock. */
static void test_clock_that_was_set_back(void **state)
{
	static const char *const headers[] = { "{\"evrec_trace\":1,\"clock\":\"real\"}\n",
		                               "{\"evrec_trace\":1,\"clock\":\"fake\"}\n" };

	(void)state;
	for (int fake = 0; fake < 2; fake++) {
		for (int by_series = 0; by_series < 2; by_series++) {
			evrec_replay_variant options;
			evrec_replayed_variant variant;
			evrec_replayed_trace trace;
			evrec_replay *r;

			evrec_replay_variant_init(&options);
			options.correlator.burst_size = 1;
			options.by_series = by_series;
			options.series.rate_limit = true;
			r = evrec_replay_new(&options, 1, NULL);
			assert_non_null(r);
			feed(r, headers[fake]);
			feed(r, "{\"id\":1,\"t\":7200," POD "}\n");
			feed(r, "{\"id\":2,\"t\":3600," OTHER_REASON "}\n{\"id\":2,\"t\":3901}\n");
			evrec_replay_get_variant(r, 0, &variant);
			assert_int_equal(variant.tally.rate_limited, fake ? 2 : 1);
			evrec_replay_get_trace(r, &trace);
			assert_int_equal(trace.first, 3600 * EVREC_SECOND);
			assert_int_equal(trace.last, 7200 * EVREC_SECOND);
			evrec_replay_free(r);
		}
	}
}

/* The same event with a spam key of its own has a token of its own. */
static void test_definitions_with_other_keys_are_others(void **state)
{
	evrec_replay_variant options;
	evrec_replayed_variant variant;
	evrec_replay *r;

	(void)state;
	evrec_replay_variant_init(&options);
	options.correlator.burst_size = 1;
	r = evrec_replay_new(&options, 1, NULL);
	assert_non_null(r);
	feed(r, HEADER "{\"id\":1,\"t\":1," POD "}\n{\"id\":2,\"t\":1," POD "}\n");
	feed(r, "{\"id\":3,\"t\":1," POD ",\"keys\":{\"spam\":\"x\"}}\n{\"id\":3,\"t\":1}\n{\"id\":1,\"t\":1}\n");
	evrec_replay_get_variant(r, 0, &variant);
	assert_int_equal(variant.tally.created, 1);
	assert_int_equal(variant.tally.patched, 1);
	assert_int_equal(variant.tally.rate_limited, 3);
	evrec_replay_free(r);
}

/* As a disk that was full leaves it, or a writer that was killed. */
static void test_header_that_was_cut_is_malformed(void **state)
{
	evrec_replay *r = plain_replay();

	(void)state;
	feed(r, "{\"evrec_trace\":1,\"evr");
	assert_int_equal(evrec_replay_end(r, NULL), 0);
	assert_int_equal(trace_of(r).malformed, 1);
	evrec_replay_free(r);
}

/* An event is forgotten once `kept` others have occurred since it did, and not before. Then its id stands for nothing. */
static void check_kept(unsigned kept, int digits)
{
	evrec_replay *r = plain_replay();
	unsigned message = 1;

	feed(r, HEADER);
	feed_definition(r, 1, 0, digits);
	for (; message < kept; message++) {
		feed_definition(r, 2, message, digits);
	}
	feed(r, "{\"id\":1,\"t\":2}\n");
	for (; message < 2 * kept - 1; message++) {
		feed_definition(r, 2, message, digits);
	}
	feed(r, "{\"id\":1,\"t\":3}\n");
	assert_int_equal(trace_of(r).malformed, 0);
	for (; message < 3 * kept - 1; message++) {
		feed_definition(r, 2, message, digits);
	}
	feed(r, "{\"id\":1,\"t\":4}\n");
	assert_int_equal(trace_of(r).malformed, 1);
	evrec_replay_free(r);
}

static void test_many_definitions_are_forgotten(void **state)
{
	(void)state;
	check_kept(131072, 1);
}

/* 4,096 of these take more than 256 MiB, but a writer may have an id for each. */
static void test_long_definitions_are_forgotten(void **state)
{
	(void)state;
	check_kept(4096, 20000);
}

/* Each variant keeps something for each definition. */
static void test_definitions_of_many_variants_take_bounded_memory(void **state)
{
	struct counting_allocator allocator = { 0 };
	evrec_replay_variant variants[EVREC_REPLAY_VARIANTS];
	evrec_replay *r;

	(void)state;
	for (size_t i = 0; i < EVREC_REPLAY_VARIANTS; i++) {
		evrec_replay_variant_init(&variants[i]);
	}
	evrec_set_allocator(counting_realloc, &allocator);
	r = evrec_replay_new(variants, EVREC_REPLAY_VARIANTS, NULL);
	assert_non_null(r);
	feed(r, HEADER);
	for (unsigned i = 1; i <= 90000; i++) {
		feed_definition(r, i % 4096 + 1, i, 1);
	}
	assert_int_equal(trace_of(r).malformed, 0);
	assert_in_range(allocator.live, (size_t)200 << 20, (size_t)300 << 20);
	evrec_replay_free(r);
	assert_int_equal(allocator.live, 0);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_variant_has_its_tokens),
		cmocka_unit_test(test_series_have_heartbeats),
		cmocka_unit_test(test_options_are_checked),
		cmocka_unit_test(test_other_files_are_refused),
		cmocka_unit_test(test_damage_is_counted),
		cmocka_unit_test(test_definitions_that_cannot_be_read_change_no_id),
		cmocka_unit_test(test_definitions_are_the_same_by_any_id),
		cmocka_unit_test(test_definitions_with_other_keys_are_others),
		cmocka_unit_test(test_clock_that_was_set_back),
		cmocka_unit_test(test_header_that_was_cut_is_malformed),
		cmocka_unit_test(test_many_definitions_are_forgotten),
		cmocka_unit_test(test_long_definitions_are_forgotten),
		cmocka_unit_test(test_definitions_of_many_variants_take_bounded_memory),
	};

	return cmocka_run_group_tests_name("correlate: replay", tests, NULL, NULL);
}
