/* What answers say: of a receiver, of a proxy, and of nobody who speaks OTLP. */
#include "otlp/answer.h"

#include "base/utf8.h"

#include "unit.h"

#define JSON EVREC_STR("application/json")
#define PROTOBUF EVREC_STR("application/x-protobuf")
#define TEXT EVREC_STR("text/plain; charset=utf-8")
#define UNKNOWN EVREC_STR("")

static struct otlp_answer read_as(int status, enum otlp_encoding asked, evrec_str type, evrec_str body)
{
	struct otlp_answer answer = { .status = status, .rejected = 99, .message = "old" };
	char *copy = malloc(body.len + 1); /* so that a sanitizer sees a read behind it */

	assert_non_null(copy);
	memcpy(copy, body.data == NULL ? "" : body.data, body.len);
	otlp_answer_read(&answer, asked, type, (evrec_str){ copy, body.len });
	free(copy);
	assert_int_equal(answer.status, status);
	return answer;
}

static void check(struct otlp_answer answer, int64_t rejected, const char *message)
{
	assert_int_equal(answer.rejected, rejected);
	assert_string_equal(answer.message, message);
}

static void a_success_that_says_nothing_took_all(void **state)
{
	(void)state;
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("")), 0, "");
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("\x0A\0")), 0, "");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("{}")), 0, "");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("{\"partialSuccess\":{}}")), 0, "");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("{\"partialSuccess\":null}")), 0, "");
	check(read_as(204, OTLP_JSON, UNKNOWN, EVREC_STR("")), 0, "");
}

static void a_success_that_cannot_be_read_took_all(void **state)
{
	(void)state;
	check(read_as(200, OTLP_PROTOBUF, TEXT, EVREC_STR("ok")), 0, "");
	check(read_as(202, OTLP_PROTOBUF, UNKNOWN, EVREC_STR("ok")), 0, "");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("[1]")), 0, "");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("{")), 0, "");
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("\x0A\x05")), 0, "");
}

static void a_web_page_is_one_of_a_success_alone(void **state)
{
	const evrec_str html = EVREC_STR("text/html; charset=utf-8"), page = EVREC_STR("<html>");

	(void)state;
	check(read_as(200, OTLP_JSON, html, page), 0, "");
	assert_true(read_as(200, OTLP_JSON, html, page).web_page);
	assert_true(read_as(200, OTLP_JSON, EVREC_STR("Text/HTML"), EVREC_STR("")).web_page);
	assert_false(read_as(404, OTLP_JSON, html, page).web_page);
	assert_false(read_as(200, OTLP_JSON, TEXT, page).web_page);
	assert_false(read_as(200, OTLP_JSON, UNKNOWN, page).web_page);
}

static void a_partial_success_says_how_many_and_why(void **state)
{
	static const char json[] = "{\"partialSuccess\":{\"rejectedLogRecords\":\"3\",\"errorMessage\":\"too old\"}}";

	(void)state;
	check(read_as(200, OTLP_JSON, JSON, str_from(json)), 3, "too old");
	check(read_as(200, OTLP_PROTOBUF, EVREC_STR("Application/JSON;charset=utf-8"), str_from(json)), 3, "too old");
	check(read_as(200, OTLP_PROTOBUF, UNKNOWN, str_from(json)), 3, "too old");
	check(read_as(200, OTLP_JSON, JSON, EVREC_STR("{\"partialSuccess\":{\"rejectedLogRecords\":4}}")), 4, "");
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("\x0A\x0C\x08\xAC\x02\x12\x07too old")), 300, "too old");
	check(read_as(200, OTLP_JSON, UNKNOWN, EVREC_STR("\x0A\x0B\x08\x03\x12\x07too old")), 3, "too old");
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("\x0A\x06\x12\x04slow")), 0, "slow");
}

static void a_number_that_is_none_rejects_nothing(void **state)
{
	static const char *const numbers[] = { "\"-3\"", "-3", "\"3x\"", "\"\"", "null", "1.5", "[]", "\" 3\"" };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		char body[80];

		(void)snprintf(body, sizeof(body), "{\"partialSuccess\":{\"rejectedLogRecords\":%s}}", numbers[i]);
		check(read_as(200, OTLP_JSON, JSON, str_from(body)), 0, "");
	}
	check(read_as(200, OTLP_JSON, JSON,
	              EVREC_STR("{\"partialSuccess\":{\"rejectedLogRecords\":\"99999999999999999999\"}}")),
	      INT64_MAX, "");
	/* -1, in ten bytes */
	check(read_as(200, OTLP_PROTOBUF, PROTOBUF, EVREC_STR("\x0A\x0B\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")),
	      0, "");
}

static void an_error_is_a_status_with_a_message(void **state)
{
	static const char json[] = "{\"code\":3,\"message\":\"bad\\nrecord\",\"details\":[]}";

	(void)state;
	check(read_as(400, OTLP_JSON, JSON, str_from(json)), 0, "bad");
	check(read_as(400, OTLP_PROTOBUF, UNKNOWN, str_from(json)), 0, "bad");
	check(read_as(400, OTLP_PROTOBUF, PROTOBUF,
	              EVREC_STR("\x08\x03\x12\x03"
	                        "bad")),
	      0, "bad");
	/* Fields of other numbers and types are skipped, of two the last one counts. */
	check(read_as(503, OTLP_PROTOBUF, PROTOBUF,
	              EVREC_STR("\x12\x01x\x1A\x02yy\x21"
	                        "12345678\x2D"
	                        "1234\x10\x05\x12\x03"
	                        "bad")),
	      0, "bad");
	check(read_as(401, OTLP_JSON, JSON, EVREC_STR("")), 0, "");
}

static void another_error_is_the_first_line_of_its_text(void **state)
{
	(void)state;
	check(read_as(404, OTLP_PROTOBUF, TEXT, EVREC_STR("\r\n 404 page not found \t\nsecond")), 0,
	      "404 page not found");
	check(read_as(404, OTLP_PROTOBUF, UNKNOWN, EVREC_STR("404 page not found\n")), 0, "404 page not found");
	check(read_as(404, OTLP_JSON, UNKNOWN, EVREC_STR("404 page not found\n")), 0, "404 page not found");
	check(read_as(502, OTLP_JSON, EVREC_STR("text/html"), EVREC_STR("<html>")), 0, "<html>");
	check(read_as(400, OTLP_JSON, JSON, EVREC_STR("{\"error\":\"no\"}")), 0, "{\"error\":\"no\"}");
	check(read_as(400, OTLP_JSON, JSON, EVREC_STR("{\"message\":7}")), 0, "{\"message\":7}");
	check(read_as(400, OTLP_JSON, EVREC_STR("application/jsonx"), EVREC_STR("{\"message\":\"a\"}")), 0,
	      "{\"message\":\"a\"}");
}

static void broken_protobuf_is_read_as_text(void **state)
{
	static const evrec_str bodies[] = {
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11 }, /* a varint of more than 64 bits */
		{ "\x02\x03"                                            /* field 0 */
		  "bad",
		  5 },
		{ "\x12", 1 },
		{ "\x12\x05"
		  "bad",
		  5 },
		{ "\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11 },
		{ "\x13\x14", 2 }, /* a group */
		{ "\x17", 1 },
		{ "\x09"
		  "1234567",
		  8 },
		{ "\x0D"
		  "123",
		  4 },
		{ "\x08\x80", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		char line[256];

		utf8_line(line, sizeof(line), bodies[i]);
		check(read_as(400, OTLP_PROTOBUF, PROTOBUF, bodies[i]), 0, line);
		check(read_as(200, OTLP_PROTOBUF, PROTOBUF, bodies[i]), 0, "");
	}
}

static void a_message_is_bounded_and_clean(void **state)
{
	static char body[70000];
	struct otlp_answer answer;

	(void)state;
	memset(body, 'x', sizeof(body));
	memcpy(body + 253, "\xC3\xA9\xC3\xA9", 4);
	body[10] = '\x1B';
	body[11] = '\xFF';
	answer = read_as(500, OTLP_JSON, TEXT, (evrec_str){ body, sizeof(body) });
	assert_true(utf8_valid(str_from(answer.message)));
	assert_memory_equal(answer.message, "xxxxxxxxxx \xEF\xBF\xBDx", 15);
	assert_true(strlen(answer.message) >= 253);
}

static void deep_json_is_refused(void **state)
{
	static char body[100000];

	(void)state;
	memset(body, '[', sizeof(body));
	check(read_as(200, OTLP_JSON, JSON, (evrec_str){ body, sizeof(body) }), 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_success_that_says_nothing_took_all),
		cmocka_unit_test(a_success_that_cannot_be_read_took_all),
		cmocka_unit_test(a_web_page_is_one_of_a_success_alone),
		cmocka_unit_test(a_partial_success_says_how_many_and_why),
		cmocka_unit_test(a_number_that_is_none_rejects_nothing),
		cmocka_unit_test(an_error_is_a_status_with_a_message),
		cmocka_unit_test(another_error_is_the_first_line_of_its_text),
		cmocka_unit_test(broken_protobuf_is_read_as_text),
		cmocka_unit_test(a_message_is_bounded_and_clean),
		cmocka_unit_test(deep_json_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
