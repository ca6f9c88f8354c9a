/* The outcome of every kind of answer to a batch. */
#include "otlp/verdict.h"

#include "unit.h"

struct row {
	int status;
	enum verdict verdict;
	enum evrec_cause cause;
	bool unanswered, refused;
	const char *problem;
	enum request_result result;
};

#define DROP(why) VERDICT_DROP, EVREC_CAUSE_##why, false, false
#define RETRY(unanswered, refused) VERDICT_RETRY, (enum evrec_cause)0, unanswered, refused

static const struct row table[] = {
	{ 0, RETRY(true, false), "transport", REQUEST_UNANSWERED },
	{ 429, RETRY(false, true), "throttled", REQUEST_REFUSED },
	{ 502, RETRY(false, false), "server", REQUEST_OTHER },
	{ 503, RETRY(false, true), "server", REQUEST_REFUSED },
	{ 504, RETRY(false, false), "server", REQUEST_TIMED_OUT },
	{ 101, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 301, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 400, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 401, DROP(FORBIDDEN), "forbidden", REQUEST_OTHER },
	{ 403, DROP(FORBIDDEN), "forbidden", REQUEST_OTHER },
	{ 404, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 405, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 408, DROP(REJECTED), "rejected", REQUEST_TIMED_OUT },
	{ 415, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 499, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 500, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 501, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 505, DROP(REJECTED), "rejected", REQUEST_OTHER },
	{ 600, DROP(REJECTED), "rejected", REQUEST_OTHER },
};

static struct otlp_verdict verdict_of(const struct otlp_answer *answer, size_t n)
{
	struct otlp_verdict verdict;

	memset(&verdict, 0xA5, sizeof(verdict));
	otlp_verdict(answer, n, &verdict);
	assert_true(verdict.affected <= n);
	assert_true(verdict.outcome.name[0] == '\0' && verdict.outcome.resource_version[0] == '\0');
	return verdict;
}

static void each_failure_has_its_outcome(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const struct row *row = &table[i];
		const struct otlp_answer answer = { .status = row->status, .retry_after = 5, .message = "why" };
		const struct otlp_verdict v = verdict_of(&answer, 7);

		assert_false(v.split);
		assert_int_equal(v.affected, 7);
		assert_int_equal(v.outcome.verdict, row->verdict);
		assert_int_equal(v.outcome.cause, row->cause);
		assert_int_equal(v.outcome.unanswered, row->unanswered);
		assert_int_equal(v.outcome.refused, row->refused);
		assert_int_equal(v.outcome.retry_after, row->verdict == VERDICT_RETRY ? 5 : 0);
		assert_string_equal(v.outcome.problem, row->problem);
		unit_check_contains(v.outcome.message, "why");
		assert_int_equal(otlp_result(&answer), row->result);
	}
}

static void a_success_is_written(void **state)
{
	(void)state;
	for (int status = 200; status <= 299; status++) {
		const struct otlp_answer answer = { .status = status };
		const struct otlp_verdict v = verdict_of(&answer, 7);

		assert_int_equal(v.affected, 0);
		assert_false(v.split);
		assert_int_equal(v.outcome.verdict, VERDICT_WRITTEN);
		assert_null(v.outcome.problem);
		assert_int_equal(otlp_result(&answer), REQUEST_SUCCEEDED);
	}
}

static void rejected_records_are_dropped_and_the_others_written(void **state)
{
	struct otlp_answer answer = { .status = 200, .rejected = 2, .message = "too old" };
	struct otlp_verdict v = verdict_of(&answer, 7);

	(void)state;
	assert_int_equal(v.affected, 2);
	assert_int_equal(v.outcome.verdict, VERDICT_DROP);
	assert_int_equal(v.outcome.cause, EVREC_CAUSE_REJECTED);
	assert_string_equal(v.outcome.problem, "rejected");
	assert_string_equal(v.outcome.message, "the receiver rejected 2 of 7 records: too old");
	assert_int_equal(otlp_result(&answer), REQUEST_SUCCEEDED);
	answer = (struct otlp_answer){ .status = 200, .rejected = INT64_MAX };
	v = verdict_of(&answer, 7);
	assert_int_equal(v.affected, 7);
	assert_string_equal(v.outcome.message, "the receiver rejected 7 of 7 records");
}

static void a_warning_is_told_and_all_are_written(void **state)
{
	const struct otlp_answer answer = { .status = 200, .message = "slow down" };
	const struct otlp_verdict v = verdict_of(&answer, 7);

	(void)state;
	assert_int_equal(v.affected, 1);
	assert_int_equal(v.outcome.verdict, VERDICT_WRITTEN);
	assert_string_equal(v.outcome.problem, "warning");
	assert_string_equal(v.outcome.message, "the receiver warns: slow down");
}

static void a_body_that_is_too_large_is_split_until_it_has_one_record(void **state)
{
	static const struct otlp_answer answers[] = {
		{ .status = 413 },
		{ .status = 400, .message = "http: request body too large" },
		{ .status = 400, .message = "Body Too Large" },
		{ .status = 400, .message = "received message larger than max (5 vs. 4)" },
		{ .status = 400, .cut_early = true },
		{ .status = 400, .too_large = true, .message = "http: request body too *****" },
	};
	const struct otlp_answer other = {
		.status = 404, .too_large = true, .message = "too large", .cut_early = true
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct otlp_verdict v = verdict_of(&answers[i], 2);

		assert_true(v.split);
		assert_int_equal(v.affected, 0);
		v = verdict_of(&answers[i], 1);
		assert_false(v.split);
		assert_int_equal(v.affected, 1);
		assert_int_equal(v.outcome.verdict, VERDICT_DROP);
		assert_int_equal(v.outcome.cause, EVREC_CAUSE_REJECTED);
		assert_int_equal(otlp_result(&answers[i]), REQUEST_OTHER);
	}
	assert_false(verdict_of(&other, 2).split);
}

static void a_timeout_says_that_the_receiver_has_too_much_to_do(void **state)
{
	const struct otlp_answer answer = { .timed_out = true };

	(void)state;
	assert_int_equal(otlp_result(&answer), REQUEST_TIMED_OUT);
}

static void messages_name_the_request_and_the_status(void **state)
{
	struct otlp_answer answer = { .status = 404, .message = "404 page not found" };

	(void)state;
	assert_string_equal(verdict_of(&answer, 1).outcome.message, "POST: 404: 404 page not found");
	answer = (struct otlp_answer){ .status = 401 };
	assert_string_equal(verdict_of(&answer, 1).outcome.message, "POST: 401");
	answer = (struct otlp_answer){ .message = "Connection refused" };
	assert_string_equal(verdict_of(&answer, 1).outcome.message, "POST: Connection refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_has_its_outcome),
		cmocka_unit_test(a_success_is_written),
		cmocka_unit_test(rejected_records_are_dropped_and_the_others_written),
		cmocka_unit_test(a_warning_is_told_and_all_are_written),
		cmocka_unit_test(a_body_that_is_too_large_is_split_until_it_has_one_record),
		cmocka_unit_test(a_timeout_says_that_the_receiver_has_too_much_to_do),
		cmocka_unit_test(messages_name_the_request_and_the_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
