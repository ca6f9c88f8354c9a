/* UTF-8: validity, cleaning and cutting as Go does them. */
#include "unit.h"

#include "base/utf8.h"

static void test_valid_text_is_accepted(void **state)
{
	(void)state;
	assert_true(utf8_valid(EVREC_STR("")));
	assert_true(utf8_valid(EVREC_STR("plain ASCII that is longer than a word")));
	assert_true(utf8_valid(
		EVREC_STR("\x7F \xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF")));
	assert_true(utf8_valid(EVREC_STR("\xED\x9F\xBF\xEE\x80\x80"))); /* around the surrogates */
}

static void test_invalid_text_is_refused(void **state)
{
	static const char *const bad[] = {
		"\x80", /* a continuation alone */
		"\xC0\xAF",
		"\xC1\xBF", /* overlong */
		"\xE0\x9F\xBF",
		"\xF0\x8F\xBF\xBF",
		"\xED\xA0\x80",
		"\xED\xBF\xBF", /* surrogates */
		"\xF4\x90\x80\x80",
		"\xF5\x80\x80\x80",
		"\xFF",
		"\xC2",
		"\xE2\x82",
		"\xF0\x9F\x98", /* cut short */
		"\xE2\x28\xA1",
		"12345678\xFF",
		"1234567\xC2",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(utf8_valid(str_from(bad[i])));
	}
}

static void check_clean(const char *in, const char *out)
{
	struct buf b = { 0 };

	utf8_clean(&b, str_from(in));
	assert_string_equal(buf_cstr(&b), out);
	buf_free(&b);
}

/* Each invalid byte becomes a replacement character, as in Go. */
static void test_invalid_bytes_are_replaced(void **state)
{
	(void)state;
	check_clean("good", "good");
	check_clean("a\xFF"
	            "b",
	            "a\xEF\xBF\xBD"
	            "b");
	check_clean("\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD");
	check_clean("\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
	check_clean("\xC3\xA9\xC3", "\xC3\xA9\xEF\xBF\xBD");
}

static void test_cut_is_between_characters(void **state)
{
	const evrec_str s = EVREC_STR("a\xC3\xA9\xE2\x82\xAC"); /* 1 + 2 + 3 bytes */
	static const size_t floor[] = { 0, 1, 1, 3, 3, 3, 6, 6 };
	size_t max;

	(void)state;
	for (max = 0; max < sizeof(floor) / sizeof(floor[0]); max++) {
		assert_int_equal(utf8_floor(s, max), floor[max]);
	}
}

static void test_messages_are_cut_between_characters(void **state)
{
	char text[300];
	evrec_error err;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		memset(text, 'x', i);
		for (size_t at = i; at + 3 < sizeof(text); at += 3) {
			memcpy(text + at, "\xE2\x82\xAC", 4);
		}
		assert_int_equal(error_set(&err, EVREC_EINVALID, "%s", text), EVREC_EINVALID);
		assert_true(utf8_valid(str_from(err.message)));
		assert_in_range(strlen(err.message), sizeof(err.message) - 4, sizeof(err.message) - 1);
	}
}

static void check_line(size_t size, const char *text, size_t len, const char *expected)
{
	char line[64];

	memset(line, 'x', sizeof(line));
	utf8_line(line, size, (evrec_str){ text, len });
	assert_string_equal(line, expected);
	assert_int_equal(line[size], 'x');
}

static void a_line_is_trimmed_clean_and_cut_between_characters(void **state)
{
	(void)state;
	check_line(32, NULL, 0, "");
	check_line(32, " \t\r\n\0", 5, "");
	check_line(32, "\n a\0b\x7F\xFF \t", 9, "a b \xEF\xBF\xBD");
	check_line(5, "abc\xC3\xA9", 5, "abc");
	check_line(6, "abc\xC3\xA9", 5, "abc\xC3\xA9");
	check_line(5, "abc defghijklmnopqrstuvwxyz", 27, "abc");
	check_line(1, "abc", 3, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_text_is_accepted),
		cmocka_unit_test(test_invalid_text_is_refused),
		cmocka_unit_test(test_invalid_bytes_are_replaced),
		cmocka_unit_test(test_cut_is_between_characters),
		cmocka_unit_test(test_messages_are_cut_between_characters),
		cmocka_unit_test(a_line_is_trimmed_clean_and_cut_between_characters),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
