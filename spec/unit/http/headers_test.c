/* Headers of an embedder's: which are refused, how they are sent, and that their values are never told. */
#include "http_fixture.h"

#include "base/utf8.h"
#include "http/headers.h"

static void check(const char *name, const char *value, const char *fault)
{
	const evrec_pair pair = { str_from(name), str_from(value) };
	const evrec_map headers = { &pair, 1 };
	evrec_error err = { 0 };

	assert_int_equal(headers_check(&headers, &err), fault == NULL ? 0 : EVREC_EINVALID);
	if (fault != NULL) {
		assert_int_equal(strncmp(err.message, "headers: ", 9), 0);
		unit_check_contains(err.message, fault);
		assert_null(strstr(err.message, "s3cret"));
	}
}

static void test_names_are_tokens_of_http(void **state)
{
	(void)state;
	check("x-api-key", "s3cret", NULL);
	check("!#$%&'*+-.^_`|~09AZaz", "", NULL);
	check("Authorization", "Basic s3cret==", NULL);
	check("", "s3cret", "its name is not a header's name");
	check("a b", "s3cret", "its name is not a header's name");
	check("s3cret: x", "s3cret", "its name is not a header's name");
	check("a\r\nb", "s3cret", "its name is not a header's name");
	check("\xC3\xA9", "s3cret", "its name is not a header's name");
}

static void test_values_have_no_line_breaks(void **state)
{
	const evrec_pair pair = { EVREC_STR("x"), { "s3cret\0b", 8 } };
	const evrec_map headers = { &pair, 1 };
	evrec_error err;

	(void)state;
	check("x", "s3cret\tand more", NULL);
	check("x", "s3cret\xC3\xA9", NULL);
	check("x", "s3cret\r\nHost: y", "x: a control character");
	check("x", "s3cret\n", "x: a control character");
	check("x", "s3cret\x7F", "x: a control character");
	check("x", " s3cret", "space at an end");
	check("x", "s3cret\t", "space at an end");
	assert_int_equal(headers_check(&headers, &err), EVREC_EINVALID);
}

static void test_headers_of_the_clients_are_refused(void **state)
{
	static const char *const names[] = {
		"accept-encoding", "content-type", "Content-Encoding", "CONTENT-LENGTH", "host",
		"Expect",          "te",           "trailer",          "connection",     "upgrade"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		check(names[i], "s3cret", "evrec's to set");
	}
}

static void test_a_header_is_given_once(void **state)
{
	const evrec_pair pairs[] = { { EVREC_STR("X-Key"), EVREC_STR("a") }, { EVREC_STR("x-key"), EVREC_STR("b") } };
	const evrec_map headers = { pairs, 2 };
	evrec_error err;

	(void)state;
	assert_int_equal(headers_check(&headers, &err), EVREC_EINVALID);
	unit_check_contains(err.message, "x-key is there twice");
}

static void test_headers_are_counted(void **state)
{
	evrec_pair pairs[HEADERS_MAX + 1];
	char names[HEADERS_MAX + 1][8];
	evrec_map headers = { pairs, HEADERS_MAX };
	evrec_error err;

	(void)state;
	for (unsigned i = 0; i <= HEADERS_MAX; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "h%u", i);
		pairs[i] = (evrec_pair){ str_from(names[i]), EVREC_STR("v") };
	}
	assert_int_equal(headers_check(&headers, &err), 0);
	headers.len++;
	assert_int_equal(headers_check(&headers, &err), EVREC_EINVALID);
}

static void test_values_are_hidden_with_and_without_their_scheme(void **state)
{
	const evrec_pair pairs[] = { { EVREC_STR("Authorization"), EVREC_STR("Bearer s3cret-1") },
		                     { EVREC_STR("x-key"), EVREC_STR("s3cret-2") },
		                     { EVREC_STR("x-empty"), EVREC_STR("") } };
	const evrec_map headers = { pairs, 3 };
	char text[] = "Bearer s3cret-1, s3cret-1 or s3cret-2, said the server; s3cr";

	(void)state;
	headers_hide(&headers, text);
	assert_string_equal(text, "***************, ******** or ********, said the server; ****");
}

static void test_values_are_hidden_in_a_line_for_people(void **state)
{
	const evrec_pair pairs[] = { { EVREC_STR("X-Tab"), EVREC_STR("Key\ts3cret-1") },
		                     { EVREC_STR("X-Latin-1"), EVREC_STR("s3cret\xff-2") } };
	const evrec_map headers = { pairs, 2 };
	char line[64];

	(void)state;
	utf8_line(line, sizeof(line), EVREC_STR("not Key\ts3cret-1, s3cret-1 or s3cret\xff-2"));
	headers_hide(&headers, line);
	assert_string_equal(line, "not ************, ******** or ***********");
}

static void test_headers_are_sent_with_each_request(void **state)
{
	const evrec_pair pairs[] = { { EVREC_STR("X-Key"), EVREC_STR("s3cret") },
		                     { EVREC_STR("X-Empty"), EVREC_STR("") } };
	struct http_fixture f;

	(void)state;
	http_fixture_prepare(&f, "");
	f.options.headers = (evrec_map){ pairs, 2 };
	f.options.encoding = "identity";
	http_server_start(&f.server, TURNS({ TURN_KEEP, OK_KEEP_ALIVE }));
	http_fixture_open_client(&f);
	for (size_t i = 0; i < 2; i++) {
		http_fixture_exchange(&f);
		http_server_check_saw(&f.server, i, "\r\nX-Key: s3cret\r\n");
		http_server_check_saw(&f.server, i, "\r\nX-Empty:\r\n");
		http_server_check_saw(&f.server, i, "\r\nContent-Encoding: identity\r\n");
	}
	http_fixture_close(&f);
}

static void test_an_answer_tells_its_content_type(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, HTTP_REPLY("200 OK", "Content-Type: text/x; a=b\r\n", "") },
	                            { TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	/* It is borrowed from a request that lies idle until the next one. */
	assert_str(f.response.content_type, "text/x; a=b");
	http_fixture_exchange(&f);
	assert_int_equal(f.response.content_type.len, 0);
	http_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_tokens_of_http),
		cmocka_unit_test(test_values_have_no_line_breaks),
		cmocka_unit_test(test_headers_of_the_clients_are_refused),
		cmocka_unit_test(test_a_header_is_given_once),
		cmocka_unit_test(test_headers_are_counted),
		cmocka_unit_test(test_values_are_hidden_with_and_without_their_scheme),
		cmocka_unit_test(test_values_are_hidden_in_a_line_for_people),
		cmocka_unit_test(test_headers_are_sent_with_each_request),
		cmocka_unit_test(test_an_answer_tells_its_content_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
