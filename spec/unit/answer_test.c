#include "unit.h"

#include "deliver/answer.h"

static evrec_answer read_body(int status, const char *body)
{
	evrec_answer answer = { .status = status };

	answer_read_body(&answer, str_from(body));
	return answer;
}

static void test_event(void **state)
{
	evrec_answer a =
		read_body(201, "{\"kind\":\"Event\",\"metadata\":{\"name\":\"web-0.17\",\"resourceVersion\":\"42\"}}");

	(void)state;
	assert_int_equal(a.status, 201);
	assert_string_equal(a.name, "web-0.17");
	assert_string_equal(a.resource_version, "42");
	assert_string_equal(a.message, "");
	a = read_body(200, "{\"metadata\":{\"name\":\"x\"}}");
	assert_int_equal(a.status, 200);
	assert_string_equal(a.name, "x");
	assert_string_equal(a.resource_version, "");
}

static void test_event_with_strange_fields(void **state)
{
	char body[400], name[257];
	evrec_answer a = read_body(201, "{\"kind\":\"Event\",\"metadata\":{\"name\":7,\"resourceVersion\":null}}");

	(void)state;
	assert_int_equal(a.status, 201);
	assert_string_equal(a.name, "");
	a = read_body(201, "{\"kind\":\"Event\",\"metadata\":[]}");
	assert_int_equal(a.status, 201);
	/* A name too long to be kept is as good as none. */
	memset(name, 'a', sizeof(name) - 1);
	name[256] = '\0';
	snprintf(body, sizeof(body), "{\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"}}", name);
	assert_string_equal(read_body(201, body).name, "");
	snprintf(body, sizeof(body), "{\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"}}", name + 1);
	assert_string_equal(read_body(201, body).name, name + 1);
}

static void test_success_from_something_else(void **state)
{
	const char *bodies[] = { "",
		                 " ",
		                 "<html>\n<body>hello",
		                 "null",
		                 "[]",
		                 "\"text\"",
		                 "{\"kind\":\"Pod\"}",
		                 "{\"kind\":\"Pod\",\"metadata\":{}}",
		                 "{\"kind\":\"Status\",\"metadata\":{}}",
		                 "{\"kind\":\"Event\"" };

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		evrec_answer a = read_body(200, bodies[i]);

		assert_int_equal(a.status, 0);
		assert_false(a.unsent);
		assert_memory_equal(a.message, "not an API server's answer", 26);
	}
	assert_string_equal(read_body(200, "\r\n <html>\r\n<body>").message, "not an API server's answer: <html>");
	assert_string_equal(read_body(204, "").message, "not an API server's answer");
}

/* What stands in for a server need not say what it has stored. */
static void test_success_of_few_words(void **state)
{
	(void)state;
	assert_int_equal(read_body(200, "{}").status, 200);
	assert_int_equal(read_body(201, "{\"metadata\":1}").status, 201);
	assert_string_equal(read_body(201, "{}").name, "");
}

/* An event's message may have any character, and comes back. */
static void test_nul_in_a_message(void **state)
{
	evrec_answer a = read_body(201, "{\"kind\":\"Event\",\"metadata\":{\"name\":\"n\"},\"message\":\"a\\u0000b\"}");

	(void)state;
	assert_int_equal(a.status, 201);
	assert_string_equal(a.name, "n");
	a = read_body(422, "{\"kind\":\"Status\",\"message\":\"no\\u0000t\"}");
	assert_string_equal(a.message, "no");
}

static void test_status(void **state)
{
	evrec_answer a = read_body(
		422,
		"{\"kind\":\"Status\",\"message\":\"Event \\\"x\\\" is invalid\",\"reason\":\"Invalid\","
		"\"details\":{\"causes\":[{\"reason\":\"FieldValueInvalid\",\"field\":\"involvedObject.namespace\","
		"\"message\":\"does not match\"},{\"message\":\"second\"},{\"message\":\"is invalid\"},7]}}");

	(void)state;
	assert_int_equal(a.status, 422);
	assert_string_equal(a.message, "Event \"x\" is invalid; involvedObject.namespace: does not match; second");
	assert_false(a.terminating);
	assert_int_equal(a.retry_after, 0);
	assert_string_equal(read_body(403, "{\"reason\":\"Forbidden\"}").message, "Forbidden");
	assert_string_equal(read_body(400, "{\"message\":\"a\\nb\\u0007c \"}").message, "a b c");
	assert_string_equal(read_body(400, "{}").message, "");
	assert_string_equal(read_body(400, "{\"message\":7,\"details\":[],\"reason\":{}}").message, "");
}

static void test_terminating(void **state)
{
	const char *body = "{\"message\":\"m\",\"details\":{\"causes\":[{\"message\":\"x\"},{\"reason\":"
			   "\"NamespaceTerminating\"}]}}";

	(void)state;
	assert_true(read_body(403, body).terminating);
	assert_true(read_body(404, body).terminating);
	assert_false(read_body(409, body).terminating);
}

static void test_retry_after_in_details(void **state)
{
	const char *body = "{\"details\":{\"retryAfterSeconds\":3}}";
	evrec_answer a = { .status = 429, .retry_after = EVREC_SECOND };

	(void)state;
	assert_int_equal(read_body(429, body).retry_after, 3 * EVREC_SECOND);
	answer_read_body(&a, str_from(body));
	assert_int_equal(a.retry_after, EVREC_SECOND);
	assert_int_equal(read_body(429, "{\"details\":{\"retryAfterSeconds\":-3}}").retry_after, 0);
	assert_int_equal(read_body(429, "{\"details\":{\"retryAfterSeconds\":\"3\"}}").retry_after, 0);
	assert_true(read_body(429, "{\"details\":{\"retryAfterSeconds\":9223372036854775807}}").retry_after > 0);
}

static void test_text(void **state)
{
	char longer[1000];
	evrec_answer a;

	(void)state;
	assert_string_equal(read_body(429, "Too many requests, please try again later.\n").message,
	                    "Too many requests, please try again later.");
	assert_string_equal(read_body(502, "\n\n  first\r\nsecond").message, "first");
	assert_string_equal(read_body(502, "bad \xff byte").message, "bad \xef\xbf\xbd byte");
	assert_string_equal(read_body(502, "").message, "");
	/* 254 bytes and a character of two: the cut is between characters. */
	memset(longer, 'a', sizeof(longer));
	memcpy(longer + 254, "\xc3\xa4", 2);
	longer[999] = '\0';
	a = read_body(500, longer);
	assert_int_equal(strlen(a.message), 254);
}

static void test_json_bombs(void **state)
{
	size_t len = 1024 * 1024;
	char *bomb = malloc(len);
	uint64_t random = unit_seed();
	evrec_answer a;

	(void)state;
	memset(bomb, '[', len);
	a = (evrec_answer){ .status = 200 };
	answer_read_body(&a, (evrec_str){ bomb, len });
	assert_int_equal(a.status, 0);
	for (size_t i = 0; i + 5 <= len; i += 5) {
		memcpy(bomb + i, "{\"a\":", 5);
	}
	a = (evrec_answer){ .status = 500 };
	answer_read_body(&a, (evrec_str){ bomb, len });
	assert_int_equal(a.status, 500);
	for (size_t i = 0; i < len; i++) {
		bomb[i] = (char)unit_random(&random);
	}
	for (int i = 0; i < 50; i++) {
		size_t at = unit_random(&random) % len;

		a = (evrec_answer){ .status = i % 2 == 0 ? 200 : 503 };
		answer_read_body(&a, (evrec_str){ bomb + at, len - at });
		assert_true(strlen(a.message) < sizeof(a.message));
	}
	free(bomb);
}

static void test_retry_after_header(void **state)
{
	/* Sun, 06 Nov 1994 08:49:37 GMT */
	int64_t date = INT64_C(784111777) * EVREC_SECOND;
	const char *nothing[] = { "",
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
	const char *same[] = { "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		               "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994" };

	(void)state;
	assert_int_equal(answer_retry_after(EVREC_STR("1"), date), EVREC_SECOND);
	assert_int_equal(answer_retry_after(EVREC_STR(" 120 "), date), 120 * EVREC_SECOND);
	assert_int_equal(answer_retry_after(EVREC_STR("0"), date), 0);
	assert_true(answer_retry_after(EVREC_STR("99999999999999999999999999999"), date) > 0);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(answer_retry_after(str_from(same[i]), date - 10 * EVREC_SECOND), 10 * EVREC_SECOND);
	}
	/* 2044, not 1944; 1945, not 2045. */
	assert_true(answer_retry_after(EVREC_STR("Sunday, 06-Nov-44 08:49:37 GMT"), date) > 0);
	assert_int_equal(answer_retry_after(EVREC_STR("Monday, 06-Nov-45 08:49:37 GMT"), date), 0);
	assert_int_equal(answer_retry_after(EVREC_STR("Sun, 06 Nov 1994 08:49:37 GMT"), date), 0);
	assert_true(answer_retry_after(EVREC_STR("Fri, 31 Dec 9999 23:59:59 GMT"), date) > 0);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		assert_int_equal(answer_retry_after(str_from(nothing[i]), date - EVREC_SECOND), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_event_with_strange_fields),
		cmocka_unit_test(test_success_from_something_else),
		cmocka_unit_test(test_success_of_few_words),
		cmocka_unit_test(test_nul_in_a_message),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_terminating),
		cmocka_unit_test(test_retry_after_in_details),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json_bombs),
		cmocka_unit_test(test_retry_after_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
