/* The table of semantics 5, every cell. */
#include "unit.h"

#include "deliver/retry.h"

struct row {
	int status;
	bool unsent, terminating; /* of the answer */
	enum verb verb;
	bool was_uncertain, renamed; /* the state */
	enum verdict verdict;
	enum evrec_cause cause;
	bool uncertain, quiet;
};

#define POST VERB_CREATE
#define PATCH VERB_PATCH
#define DROP(why) VERDICT_DROP, EVREC_CAUSE_##why
#define NO_CAUSE 0

static const struct row table[] = {
	{ 200, 0, 0, POST, 0, 0, VERDICT_DONE, NO_CAUSE, 0, 1 },
	{ 201, 0, 0, POST, 0, 0, VERDICT_DONE, NO_CAUSE, 0, 1 },
	{ 201, 0, 0, POST, 1, 1, VERDICT_DONE, NO_CAUSE, 0, 1 },
	{ 299, 0, 0, POST, 0, 0, VERDICT_DONE, NO_CAUSE, 0, 1 },
	{ 200, 0, 0, PATCH, 0, 0, VERDICT_DONE, NO_CAUSE, 0, 1 },
	{ 0, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 0, 1, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 0, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 0, 1, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 429, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 429, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 408, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 500, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 502, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 503, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 504, 0, 0, POST, 0, 0, VERDICT_AGAIN, NO_CAUSE, 1, 0 },
	{ 408, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 500, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 502, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 503, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 504, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 401, 0, 0, POST, 0, 0, VERDICT_RELOAD, NO_CAUSE, 0, 0 },
	{ 401, 0, 0, PATCH, 0, 0, VERDICT_RELOAD, NO_CAUSE, 0, 0 },
	{ 404, 0, 0, PATCH, 0, 0, VERDICT_CREATE, NO_CAUSE, 0, 1 },
	{ 404, 0, 1, PATCH, 0, 0, VERDICT_CREATE, NO_CAUSE, 0, 1 },
	{ 404, 0, 0, POST, 0, 0, DROP(NOT_FOUND), 0, 0 },
	{ 404, 0, 1, POST, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 400, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 413, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 422, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 410, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 405, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 400, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 413, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 422, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 410, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 301, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 307, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 101, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 501, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 999, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ -1, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 403, 0, 0, POST, 0, 0, DROP(FORBIDDEN), 0, 0 },
	{ 403, 0, 0, PATCH, 0, 0, DROP(FORBIDDEN), 0, 0 },
	{ 403, 0, 1, POST, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 403, 0, 1, PATCH, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 409, 0, 0, POST, 1, 0, VERDICT_EXISTS, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 1, 1, VERDICT_EXISTS, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 0, 0, VERDICT_RENAME, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 0, 1, DROP(CONFLICT), 0, 0 },
	{ 409, 0, 0, PATCH, 0, 0, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
	{ 409, 0, 0, PATCH, 0, 1, VERDICT_AGAIN, NO_CAUSE, 0, 0 },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *row = &table[i];
		struct retry_state before = { .tries = 3, .uncertain = row->was_uncertain, .renamed = row->renamed };
		evrec_answer answer = { .status = row->status, .unsent = row->unsent, .terminating = row->terminating };
		struct retry_decision d = retry_decide(row->verb, &before, &answer);

		if (d.verdict != row->verdict || (d.verdict == VERDICT_DROP && d.cause != row->cause) ||
		    d.uncertain != row->uncertain || d.quiet != row->quiet) {
			fail_msg("row %zu (status %d): verdict %d, cause %d, uncertain %d, quiet %d", i, row->status,
			         d.verdict, d.cause, d.uncertain, d.quiet);
		}
	}
}

/* Authorization refuses a namespace, admission one event; a namespace that goes takes none. */
static void test_places_that_refuse(void **state)
{
	const struct {
		int status;
		const char *message;
		bool terminating, refuses;
	} rows[] = {
		{ 403, "", false, true },
		{ 403, "no", false, true },
		{ 403, "events is forbidden: User \"u\" cannot create resource \"events\" in API group \"\"", false,
		  true },
		{ 403, "events \"a.1\" is forbidden: User \"u\" cannot patch resource \"events\"", false, true },
		{ 403, "events \"a.1\" is forbidden: exceeded quota: q, requested: count/events=1", false, false },
		{ 403, "admission webhook \"w.example.com\" denied the request: it cannot be", false, false },
		{ 403, "events \"a.1\" is forbidden: because it is being terminated", true, true },
		{ 404, "", true, true },
		{ 404, "", false, false },
		{ 422, "", false, false },
		{ 503, "", false, false },
		{ 201, "", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct retry_state before = { 0 };
		evrec_answer answer = { .status = rows[i].status, .terminating = rows[i].terminating };

		snprintf(answer.message, sizeof(answer.message), "%s", rows[i].message);
		assert_int_equal(retry_decide(POST, &before, &answer).place_refuses, rows[i].refuses);
	}
}

static void test_window_doubles_up_to_its_cap(void **state)
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

static void test_server_is_believed_up_to_5_minutes(void **state)
{
	(void)state;
	assert_int_equal(retry_delay(1, 7 * EVREC_SECOND, 12345), 7 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, 3600 * EVREC_SECOND, 12345), 300 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, INT64_MAX, 0), 300 * EVREC_SECOND);
	/* At least what was asked for: a longer wait of our own stands. */
	assert_int_equal(retry_delay(9, EVREC_SECOND, (uint64_t)(20 * EVREC_SECOND)), 20 * EVREC_SECOND);
	assert_int_equal(retry_delay(1, -5, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_places_that_refuse),
		cmocka_unit_test(test_window_doubles_up_to_its_cap),
		cmocka_unit_test(test_jitter_is_full),
		cmocka_unit_test(test_server_is_believed_up_to_5_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
