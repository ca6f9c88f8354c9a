/* Reading an API server's answer: an Event, a Status, or something else; and a response that was cut or lost. */
#include "unit.h"

#include "kubernetes/answer.h"
#include "kubernetes/verdict.h"

static evrec_answer read_body(int status, const char *body)
{
	evrec_answer answer = { .status = status };

	answer_read_body(&answer, str_from(body));
	return answer;
}

static void test_event_has_name_and_version(void **state)
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

static void test_fields_of_other_types_are_ignored(void **state)
{
	char body[400], name[257];
	evrec_answer a = read_body(201, "{\"kind\":\"Event\",\"metadata\":{\"name\":7,\"resourceVersion\":null}}");

	(void)state;
	assert_int_equal(a.status, 201);
	assert_string_equal(a.name, "");
	a = read_body(201, "{\"kind\":\"Event\",\"metadata\":[]}");
	assert_int_equal(a.status, 201);
	/* A name longer than its field is ignored. */
	memset(name, 'a', sizeof(name) - 1);
	name[256] = '\0';
	snprintf(body, sizeof(body), "{\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"}}", name);
	assert_string_equal(read_body(201, body).name, "");
	snprintf(body, sizeof(body), "{\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"}}", name + 1);
	assert_string_equal(read_body(201, body).name, name + 1);
}

/* As jansson reads them: the last member of a key counts, and nothing but white space may follow the object. */
static void test_events_of_any_form(void **state)
{
	static const struct {
		const char *body, *name; /* NULL: no answer of an API server */
	} cases[] = {
		{ " {\"metadata\" : { \"name\" : \"web\" } } \n", "web" },
		{ "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}", "b" },
		{ "{\"metadata\":{\"name\":\"a\",\"name\":1}}", "" },
		{ "{\"metadata\":{\"name\":1,\"name\":\"b\"}}", "b" },
		{ "{\"metadata\":{\"name\":\"a\"},\"metadata\":{}}", "" },
		{ "{\"metadata\":{\"name\":\"a\"},\"metadata\":1}", "" },
		{ "{\"kind\":\"Pod\",\"kind\":\"Event\",\"metadata\":{\"name\":\"a\"}}", "a" },
		{ "{\"kind\":\"Event\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}", NULL },
		{ "{\"kind\":1,\"metadata\":{\"name\":\"a\"}}", "a" },
		{ "{\"metadata\":{\"name\":\"a\\u0062\"}}", "ab" },
		{ "{\"metadata\":{\"name\":\"a\\u0000b\"}}", "a" },
		{ "{\"metadata\":{\"n\\u0061me\":\"a\"}}", "a" },
		{ "{\"metadata\":{\"name\":\"a\\/b\"}}", "a/b" },
		{ "{\"x\":[1.5,1e3,{\"name\":\"x\"}],\"metadata\":{\"y\":{\"name\":\"y\"},\"name\":\"a\"}}", "a" },
		{ "{\"x\":12345678901234567890123,\"metadata\":{\"name\":\"a\"}}", NULL },
		{ "{\"x\":\"\xff\",\"metadata\":{\"name\":\"a\"}}", NULL },
		{ "{\"metadata\":{\"name\":\"a\"}} x", NULL },
		{ "{\"metadata\":{\"name\":\"a\"},}", NULL },
		{ "{\"metadata\":{\"name\":\"a\"}", NULL },
		{ "[{\"metadata\":{\"name\":\"a\"}}]", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		evrec_answer a = read_body(201, cases[i].body);

		assert_int_equal(a.status, cases[i].name == NULL ? 0 : 201);
		assert_string_equal(a.name, cases[i].name == NULL ? "" : cases[i].name);
	}
}

static void test_success_without_an_event_is_no_answer(void **state)
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

/* Simple servers may answer with less than an Event. */
static void test_success_may_be_an_empty_object(void **state)
{
	(void)state;
	assert_int_equal(read_body(200, "{}").status, 200);
	assert_int_equal(read_body(201, "{\"metadata\":1}").status, 201);
	assert_string_equal(read_body(201, "{}").name, "");
}

/* An event's message may have any character, and the answer repeats it. */
static void test_nul_in_a_message_is_accepted(void **state)
{
	evrec_answer a = read_body(201, "{\"kind\":\"Event\",\"metadata\":{\"name\":\"n\"},\"message\":\"a\\u0000b\"}");

	(void)state;
	assert_int_equal(a.status, 201);
	assert_string_equal(a.name, "n");
	a = read_body(422, "{\"kind\":\"Status\",\"message\":\"no\\u0000t\"}");
	assert_string_equal(a.message, "no");
}

static void test_status_becomes_a_message(void **state)
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

static void test_terminating_namespace_is_recognized(void **state)
{
	const char *body = "{\"message\":\"m\",\"details\":{\"causes\":[{\"message\":\"x\"},{\"reason\":"
			   "\"NamespaceTerminating\"}]}}";

	(void)state;
	assert_true(read_body(403, body).terminating);
	assert_true(read_body(404, body).terminating);
	assert_false(read_body(409, body).terminating);
}

#define FORBIDDEN "{\"message\":\"events.events.k8s.io \\\"%s\\\" is forbidden: %s \\\"%s\\\" cannot %s\"}"

/* The words behind the names of event and user tell that the account is refused, and not one event. */
static void test_long_names_do_not_hide_what_is_forbidden(void **state)
{
	const struct kubernetes_try try = { .verb = VERB_PATCH };
	const char *verb = "patch resource \\\"events\\\" in API group \\\"events.k8s.io\\\"";
	char body[1024], name[254] = "", user[202] = "u";
	struct outcome outcome;
	evrec_answer a;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 1; i + 2 < sizeof(user); i += 2) {
		memcpy(user + i, "\xc3\xa4", 2); /* one character */
	}
	snprintf(body, sizeof(body), FORBIDDEN, name, "User", user, verb);
	a = read_body(403, body);
	kubernetes_outcome(&try, &a, &outcome);
	assert_true(outcome.blocks_namespace);
	assert_int_equal(kubernetes_api_news(&try, &a, false), API_FORBIDDEN);
	unit_check_contains(a.message, "events.events.k8s.io \"nnn");
	unit_check_contains(a.message, "n...\" is forbidden: User \"u\xc3\xa4");
	unit_check_contains(a.message, "\xa4...\" cannot patch resource \"events\" in API group \"events.k8s.io\"");
	assert_null(strstr(a.message, "\xef\xbf\xbd"));
	/* Admission's message may have a secret in it. */
	snprintf(body, sizeof(body), FORBIDDEN, "web-0.1", "a token such as", name, verb);
	a = read_body(403, body);
	kubernetes_outcome(&try, &a, &outcome);
	assert_false(outcome.blocks_namespace);
	assert_null(strstr(a.message, "..."));
}

static void test_retry_after_of_the_details_is_a_fallback(void **state)
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

static void test_text_becomes_a_message(void **state)
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

static void test_deep_json_is_refused(void **state)
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

static evrec_answer read_response(struct http_response response)
{
	evrec_answer answer = { 0 };

	answer_read(&answer, &response);
	return answer;
}

#define READ(...) read_response((struct http_response){ __VA_ARGS__ })

static void test_missing_answer_is_unsent_or_maybe_late(void **state)
{
	evrec_answer a = READ(.unsent = true, .message = "Failed to connect");

	(void)state;
	assert_int_equal(a.status, 0);
	assert_true(a.unsent);
	assert_false(a.maybe_late);
	assert_string_equal(a.message, "Failed to connect");
	a = READ(.timed_out = true, .message = "no answer within 10 s");
	assert_false(a.unsent);
	assert_true(a.maybe_late);
}

static void test_gateway_errors_and_second_sendings_may_be_late(void **state)
{
	static const int not_late[] = { 200, 400, 401, 409, 429, 500, 503 };

	(void)state;
	for (size_t i = 0; i < sizeof(not_late) / sizeof(not_late[0]); i++) {
		assert_false(READ(.status = not_late[i], .body = EVREC_STR("{}")).maybe_late);
	}
	assert_true(READ(.status = 502).maybe_late);
	assert_true(READ(.status = 504).maybe_late);
	assert_true(READ(.status = 524).maybe_late);
	assert_true(READ(.status = 200, .sent_again = true, .body = EVREC_STR("{}")).maybe_late);
}

/* The second sending may conflict with the event of the first one. */
static void test_conflict_of_a_second_sending_is_in_doubt(void **state)
{
	static const int in_doubt[] = { 409, 429 };
	evrec_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(in_doubt) / sizeof(in_doubt[0]); i++) {
		a = READ(.status = in_doubt[i], .sent_again = true, .retry_after = EVREC_SECOND);
		assert_int_equal(a.status, 0);
		assert_false(a.unsent);
		assert_int_equal(a.retry_after, EVREC_SECOND);
		assert_string_equal(a.message, "the connection was lost while the request was under way");
		assert_int_equal(READ(.status = in_doubt[i]).status, in_doubt[i]);
	}
	assert_int_equal(READ(.status = 403, .sent_again = true).status, 403);
	/* A 401 stays one, so that credentials are reloaded; the request is in doubt. */
	a = READ(.status = 401, .sent_again = true);
	assert_int_equal(a.status, 401);
	assert_true(a.maybe_late);
}

/* The answer has the reason why the connection was closed; the request may have been carried out before. */
static void test_request_cut_off_by_a_401_is_unauthorized(void **state)
{
	evrec_answer a = READ(.unauthorized = true, .message = "partial file",
	                      .body = EVREC_STR("{\"kind\":\"Status\",\"message\":\"Unauthorized\"}"));

	(void)state;
	assert_int_equal(a.status, 401);
	assert_string_equal(a.message, "Unauthorized");
	assert_true(a.maybe_late);
	assert_string_equal(READ(.status = 401).message, "Unauthorized");
	assert_string_equal(READ(.unauthorized = true).message, "Unauthorized");
}

static void test_cut_body_is_not_parsed(void **state)
{
	(void)state;
	assert_int_equal(READ(.status = 201, .body = EVREC_STR("{\"kind\":\"Ev"), .body_cut = true).status, 201);
	assert_int_equal(READ(.status = 201, .body = EVREC_STR("<html>"), .body_cut = true).status, 0);
	assert_string_equal(READ(.status = 500, .body = EVREC_STR("{\"mess"), .body_cut = true).message, "{\"mess");
}

/* The head of a refusal says all; of any other answer that was cut, the body would count. */
static void test_cut_refusal_is_an_answer(void **state)
{
	static const int refusals[] = { 429, 503 }, others[] = { 0, 200, 401, 409, 500 };
	evrec_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		a = READ(.cut_status = refusals[i], .retry_after = EVREC_SECOND, .message = "partial file",
		         .body = EVREC_STR("slow"));
		assert_int_equal(a.status, refusals[i]);
		assert_int_equal(a.retry_after, EVREC_SECOND);
		assert_string_equal(a.message, "slow");
		assert_false(a.maybe_late);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		a = READ(.cut_status = others[i], .message = "partial file", .body = EVREC_STR("{"));
		assert_int_equal(a.status, 0);
		assert_string_equal(a.message, "partial file");
		assert_true(a.maybe_late);
	}
	assert_int_equal(READ(.cut_status = 429, .sent_again = true).status, 0);
	assert_int_equal(READ(.cut_status = 429, .unauthorized = true).status, 401);
}

static void test_retry_after_of_the_header_comes_first(void **state)
{
	evrec_answer a = READ(.status = 429, .retry_after = 7 * EVREC_SECOND,
	                      .body = EVREC_STR("{\"message\":\"slow\",\"details\":{\"retryAfterSeconds\":3}}"));

	(void)state;
	assert_int_equal(a.status, 429);
	assert_int_equal(a.retry_after, 7 * EVREC_SECOND);
	assert_string_equal(a.message, "slow");
}

static bool lacks_api(int status, const char *body)
{
	const struct http_response response = { .status = status, .body = str_from(body) };

	return answer_lacks_api(&response);
}

/* As kube-apiserver 1.36 answers for a version, a resource, a namespace and an Event that are not there. */
static void test_missing_api_is_told_from_a_missing_object(void **state)
{
	(void)state;
	assert_true(lacks_api(404, "404 page not found\n"));
	assert_true(lacks_api(404, ""));
	assert_true(lacks_api(404, "{\"kind\":\"Status\",\"message\":\"the server could not find the requested "
	                           "resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404}"));
	assert_true(lacks_api(404, "{}"));
	assert_true(lacks_api(404, "{\"details\":{\"kind\":\"\"}}"));
	assert_false(lacks_api(404, "{\"kind\":\"Status\",\"details\":{\"name\":\"nope\",\"kind\":\"namespaces\"}}"));
	assert_false(lacks_api(404, "{\"details\":{\"name\":\"m1\",\"group\":\"events.k8s.io\",\"kind\":\"events\"}}"));
	assert_false(lacks_api(404, "{\"details\":"));
	assert_false(lacks_api(403, "forbidden"));
	assert_false(lacks_api(200, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_has_name_and_version),
		cmocka_unit_test(test_fields_of_other_types_are_ignored),
		cmocka_unit_test(test_events_of_any_form),
		cmocka_unit_test(test_success_without_an_event_is_no_answer),
		cmocka_unit_test(test_success_may_be_an_empty_object),
		cmocka_unit_test(test_nul_in_a_message_is_accepted),
		cmocka_unit_test(test_status_becomes_a_message),
		cmocka_unit_test(test_terminating_namespace_is_recognized),
		cmocka_unit_test(test_long_names_do_not_hide_what_is_forbidden),
		cmocka_unit_test(test_retry_after_of_the_details_is_a_fallback),
		cmocka_unit_test(test_text_becomes_a_message),
		cmocka_unit_test(test_deep_json_is_refused),
		cmocka_unit_test(test_missing_answer_is_unsent_or_maybe_late),
		cmocka_unit_test(test_gateway_errors_and_second_sendings_may_be_late),
		cmocka_unit_test(test_conflict_of_a_second_sending_is_in_doubt),
		cmocka_unit_test(test_request_cut_off_by_a_401_is_unauthorized),
		cmocka_unit_test(test_cut_body_is_not_parsed),
		cmocka_unit_test(test_cut_refusal_is_an_answer),
		cmocka_unit_test(test_retry_after_of_the_header_comes_first),
		cmocka_unit_test(test_missing_api_is_told_from_a_missing_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
