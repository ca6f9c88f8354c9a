/* The delay before a retry: exponential backoff with full jitter, or Retry-After. */
#include "outbox/retry.h"

#include "unit.h"

static void test_backoff_doubles_up_to_30_s(void **state)
{
	const int64_t windows[] = { 500, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };

	(void)state;
	for (unsigned tries = 0; tries < 9; tries++) {
		int64_t window = windows[tries] * (EVREC_SECOND / 1000);

		assert_int_equal(retry_delay(tries, 0, 0), 0);
		assert_int_equal(retry_delay(tries, 0, (uint64_t)window), window);
		assert_int_equal(retry_delay(tries, 0, (uint64_t)window + 1), 0);
	}
	assert_true(retry_delay(UINT32_MAX, 0, UINT64_MAX) <= 30 * EVREC_SECOND);
}

static void test_jitter_is_full(void **state)
{
	uint64_t random = unit_seed();
	int quarters[4] = { 0 };

	(void)state;
	for (int i = 0; i < 4000; i++) {
		int64_t delay = retry_delay(3, 0, retry_random(&random));

		assert_in_range(delay, 0, 2 * EVREC_SECOND);
		quarters[delay * 4 / (2 * EVREC_SECOND + 1)]++;
	}
	for (int i = 0; i < 4; i++) {
		assert_in_range(quarters[i], 800, 1200);
	}
}

static void test_retry_after_is_capped_at_5_minutes(void **state)
{
	(void)state;
	assert_int_equal(retry_delay(1, 7 * EVREC_SECOND, 12345), 7 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, 3600 * EVREC_SECOND, 12345), 300 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, INT64_MAX, 0), 300 * EVREC_SECOND);
	/* Retry-After is a minimum: a longer backoff stays. */
	assert_int_equal(retry_delay(9, EVREC_SECOND, (uint64_t)(20 * EVREC_SECOND)), 20 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, -5, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backoff_doubles_up_to_30_s),
		cmocka_unit_test(test_jitter_is_full),
		cmocka_unit_test(test_retry_after_is_capped_at_5_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
