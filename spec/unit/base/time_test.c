/* Timestamps in RFC 3339, clocks, and the token bucket. */
#include "unit.h"

#include "base/clock.h"
#include "base/token_bucket.h"

#include <math.h>

static void check_format(int64_t ns, bool micro, const char *text)
{
	char out[EVREC_RFC3339_SIZE];
	size_t len = evrec_rfc3339_format(ns, micro, out);

	assert_string_equal(out, text);
	assert_int_equal(len, strlen(text));
}

static void test_timestamps_are_rfc_3339(void **state)
{
	(void)state;
	check_format(0, false, "1970-01-01T00:00:00Z");
	check_format(T0 + 999999999, false, "2023-11-14T22:13:20Z");
	check_format(T0 + 999999999, true, "2023-11-14T22:13:20.999999Z");
	check_format(T0, true, "2023-11-14T22:13:20.000000Z");
	check_format(INT64_C(951827696) * EVREC_SECOND, false, "2000-02-29T12:34:56Z");
	check_format(-1, true, "1969-12-31T23:59:59.999999Z");
	check_format(INT64_MAX, false, "2262-04-11T23:47:16Z");
	check_format(INT64_MIN + 1, false, "1677-09-21T00:12:43Z");
	check_format(INT64_MIN + 1, true, "1677-09-21T00:12:43.145224Z");
}

static void check_parse(const char *text, int64_t ns)
{
	int64_t got = 0;

	assert_true(evrec_rfc3339_parse(str_from(text), &got));
	assert_int_equal(got, ns);
}

static void test_only_valid_timestamps_are_parsed(void **state)
{
	static const char *const bad[] = {
		"",
		"2023-11-14",
		"2023-11-14T22:13:20",
		"2023-11-14T22:13:20.Z",
		"2023-11-14T22:13:20ZZ",
		"2023-13-14T22:13:20Z",
		"2023-02-29T22:13:20Z",
		"2023-04-31T22:13:20Z",
		"2023-12-32T22:13:20Z",

		"2023-11-14T24:13:20Z",
		"2023-11-14T22:60:20Z",
		"2023-11-14T22:13:20+1:00",
		"2023-11-14T22:13:20.1234567890Z",
		"1066-10-14T09:00:00Z",
		"9999-12-31T23:59:59Z",
		"20x3-11-14T22:13:20Z",
	};
	int64_t got;
	size_t i;

	(void)state;
	check_parse("2023-11-14T22:13:20Z", T0);
	check_parse("2023-11-15T00:13:20+02:00", T0);
	check_parse("2023-11-14T14:43:20-07:30", T0);
	check_parse("2023-11-14T22:13:20.5Z", T0 + EVREC_SECOND / 2);
	check_parse("2023-11-14t22:13:20.123456789z", T0 + 123456789);
	check_parse("1969-12-31T23:59:59Z", -EVREC_SECOND);
	check_parse("2000-02-29T12:34:56Z", INT64_C(951827696) * EVREC_SECOND);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(evrec_rfc3339_parse(str_from(bad[i]), &got));
	}
	assert_false(evrec_rfc3339_parse((evrec_str){ NULL, 0 }, &got));
}

static void test_timestamp_survives_a_round_trip(void **state)
{
	uint64_t seed = unit_seed();
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		int64_t ns = (int64_t)(unit_random(&seed) % (UINT64_C(9000000000) * 1000000000)) -
		             INT64_C(4500000000) * EVREC_SECOND;
		char out[EVREC_RFC3339_SIZE];
		int64_t back;

		ns -= ns % 1000;
		(void)evrec_rfc3339_format(ns, true, out);
		assert_true(evrec_rfc3339_parse(str_from(out), &back));
		assert_int_equal(back, ns);
	}
}

static void test_seconds_are_rounded(void **state)
{
	int64_t ns;

	(void)state;
	assert_true(evrec_seconds_to_ns(1700000000, &ns));
	assert_int_equal(ns, T0);
	assert_true(evrec_seconds_to_ns(0.3, &ns));
	assert_int_equal(ns, 300000000);
	assert_true(evrec_seconds_to_ns(-1.5, &ns));
	assert_int_equal(ns, -1500000000);
	assert_true(evrec_seconds_to_ns(1700000000.5, &ns));
	assert_int_equal(ns, T0 + EVREC_SECOND / 2);
	/* The doubles are 1700000000.2999999523 and 946684800.2999999523. */
	assert_true(evrec_seconds_to_ns(1700000000.3, &ns));
	assert_int_equal(ns, T0 + 3 * EVREC_SECOND / 10);
	assert_true(evrec_seconds_to_ns(946684800.3, &ns));
	assert_int_equal(ns, 946684800 * EVREC_SECOND + 3 * EVREC_SECOND / 10);
	assert_true(evrec_seconds_to_ns(1700000000.9999999, &ns));
	assert_int_equal(ns, T0 + EVREC_SECOND);
	/* No time in whole microseconds is one of these two numbers. */
	assert_true(evrec_seconds_to_ns(1700000000 + 1 / 4194304.0, &ns));
	assert_int_equal(ns, T0 + 238);
	assert_true(evrec_seconds_to_ns(0.0000015, &ns));
	assert_int_equal(ns, 1500);
}

static void test_seconds_out_of_range_are_refused(void **state)
{
	int64_t ns;

	(void)state;
	assert_false(evrec_seconds_to_ns((double)NAN, &ns));
	assert_false(evrec_seconds_to_ns((double)INFINITY, &ns));
	assert_false(evrec_seconds_to_ns(-1e300, &ns));
	assert_false(evrec_seconds_to_ns(9223372036.9, &ns));
}

static void test_only_fake_clocks_are_set(void **state)
{
	evrec_clock *fake = evrec_clock_fake(T0);

	(void)state;
	assert_int_equal(evrec_clock_now(fake), T0);
	evrec_clock_set(fake, T0 + 5);
	assert_int_equal(evrec_clock_now(fake), T0 + 5);
	assert_int_equal(clock_monotonic(fake), T0 + 5);
	evrec_clock_set(evrec_clock_real(), 0); /* no effect */
	assert_true(evrec_clock_now(evrec_clock_real()) > T0);
	evrec_clock_release(fake);
}

/* 25 tokens, and a new one every 300 s, as in client-go's EventSourceObjectSpamFilter. */
static void test_bucket_refills_up_to_its_burst(void **state)
{
	const double qps = (double)(1.0F / 300);
	struct token_bucket b;
	int i;

	(void)state;
	token_bucket_fill(&b, 25, T0);
	for (i = 0; i < 25; i++) {
		assert_true(token_bucket_take(&b, 25, qps, T0));
	}
	assert_false(token_bucket_take(&b, 25, qps, T0));
	assert_false(token_bucket_take(&b, 25, qps, T0 + 299 * EVREC_SECOND));
	assert_true(token_bucket_take(&b, 25, qps, T0 + 300 * EVREC_SECOND));
	assert_false(token_bucket_take(&b, 25, qps, T0 + 300 * EVREC_SECOND));
	/* A clock that steps back adds no token; later steps forward do. */
	assert_false(token_bucket_take(&b, 25, qps, T0));
	assert_true(token_bucket_take(&b, 25, qps, T0 + 600 * EVREC_SECOND));
	/* Never more than the burst, after any time. */
	for (i = 0; i < 25; i++) {
		assert_true(token_bucket_take(&b, 25, qps, INT64_MAX));
	}
	assert_false(token_bucket_take(&b, 25, qps, INT64_MAX));
}

static void test_bucket_without_refill(void **state)
{
	struct token_bucket b;

	(void)state;
	token_bucket_fill(&b, 1, T0);
	assert_true(token_bucket_take(&b, 1, 0, T0));
	assert_false(token_bucket_take(&b, 1, 0, INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timestamps_are_rfc_3339),
		cmocka_unit_test(test_only_valid_timestamps_are_parsed),
		cmocka_unit_test(test_timestamp_survives_a_round_trip),
		cmocka_unit_test(test_seconds_are_rounded),
		cmocka_unit_test(test_seconds_out_of_range_are_refused),
		cmocka_unit_test(test_only_fake_clocks_are_set),
		cmocka_unit_test(test_bucket_refills_up_to_its_burst),
		cmocka_unit_test(test_bucket_without_refill),
	};

	return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
