/* The header Retry-After: seconds, or a date in one of three forms. */
#include "unit.h"

#include "http/retry_after.h"

static void test_seconds_and_dates(void **state)
{
	/* Sun, 06 Nov 1994 08:49:37 GMT */
	int64_t date = INT64_C(784111777) * EVREC_SECOND;
	const char *invalid[] = { "",
		                  " ",
		                  "-1",
		                  "1.5",
		                  "soon",
		                  "1x",
		                  "Sun, 06 Nov 1994 08:49:37",
		                  "Sun, 06 Nop 1994 08:49:37 GMT",
		                  "Sun, 06 anF 1994 08:49:37 GMT",
		                  "Sunday, 06-Nov-94 08:49:37",
		                  "Sun Nov  6 08:49:37 1994 GMT",
		                  "Sun, 06 Nov 1994 08:49:37 GMTX" };
	/* The forms of RFC 9110, 5.6.7. */
	const char *dates[] = { "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		                "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994" };

	(void)state;
	assert_int_equal(retry_after_parse(EVREC_STR("1"), date), EVREC_SECOND);
	assert_int_equal(retry_after_parse(EVREC_STR(" 120 "), date), 120 * EVREC_SECOND);
	assert_int_equal(retry_after_parse(EVREC_STR("0"), date), 0);
	assert_true(retry_after_parse(EVREC_STR("99999999999999999999999999999"), date) > 0);
	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		assert_int_equal(retry_after_parse(str_from(dates[i]), date - 10 * EVREC_SECOND), 10 * EVREC_SECOND);
	}
	/* A year of two digits is at most 50 years in the future: 2044, not 1944; 1945, not 2045. */
	assert_true(retry_after_parse(EVREC_STR("Sunday, 06-Nov-44 08:49:37 GMT"), date) > 0);
	assert_int_equal(retry_after_parse(EVREC_STR("Monday, 06-Nov-45 08:49:37 GMT"), date), 0);
	assert_int_equal(retry_after_parse(EVREC_STR("Sun, 06 Nov 1994 08:49:37 GMT"), date), 0);
	assert_true(retry_after_parse(EVREC_STR("Fri, 31 Dec 9999 23:59:59 GMT"), date) > 0);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		assert_int_equal(retry_after_parse(str_from(invalid[i]), date - EVREC_SECOND), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds_and_dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
