/* Strings and numbers of JSON: as jansson writes them, for all characters, in each place of a word, in exact memory. */
#include "unit.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/json_text.h"
#include "base/utf8.h"

/* Checks a string against jansson's. */
static void check_string(evrec_str text)
{
	json_t *value = json_stringn(text.len == 0 ? "" : text.data, text.len);
	char *expected = json_dumps(value, JSON_ENCODE_ANY);
	struct buf out = { 0 };

	assert_non_null(expected);
	assert_true(json_put_utf8(&out, text, 0));
	assert_string_equal(buf_cstr(&out), expected);
	buf_clear(&out);
	assert_true(json_put_string(&out, text, 0));
	assert_string_equal(buf_cstr(&out), expected);
	buf_free(&out);
	free(expected);
	json_decref(value);
}

/* Writes the character in UTF-8. Returns its bytes. */
static size_t encode(unsigned long c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xC0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xE0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xF0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

#define PLACES 20

/*
 * A byte is looked at in a word of eight, or in the rest behind the last one: so in each place of texts of all lengths.
 */
static void test_each_ascii_character_is_as_of_jansson(void **state)
{
	(void)state;
	check_string((evrec_str){ NULL, 0 });
	for (int c = 0; c < 0x80; c++) {
		for (size_t len = 1; len <= PLACES; len++) {
			for (size_t at = 0; at < len; at++) {
				char *text = malloc(len); /* a sanitizer sees a byte more */

				memset(text, 'x', len);
				text[at] = (char)c;
				check_string((evrec_str){ text, len });
				free(text);
			}
		}
	}
}

static void test_each_character_is_as_of_jansson(void **state)
{
	char text[64];
	size_t len = 0;

	(void)state;
	for (unsigned long c = 0x80; c <= 0x10FFFF; c++) {
		if (c >= 0xD800 && c <= 0xDFFF) {
			continue; /* surrogates are no characters */
		}
		len += encode(c, text + len);
		if (len > sizeof(text) - 4 || c == 0x10FFFF) {
			check_string((evrec_str){ text, len });
			len = 0;
		}
	}
}

static void test_random_text_is_as_of_jansson(void **state)
{
	static const unsigned long limits[] = { 0x20, 0x80, 0x80, 0x800, 0xD800, 0x110000 };
	uint64_t random = unit_seed();
	char text[256];

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		const size_t most = unit_random(&random) % 60;
		size_t len = 0;

		for (size_t i = 0; i < most; i++) {
			unsigned long c = (unsigned long)(unit_random(&random) % limits[unit_random(&random) % 6]);

			c = c >= 0xD800 && c <= 0xDFFF ? '"' : c;
			len += encode(c, text + len);
		}
		check_string((evrec_str){ text, len });
	}
}

static void check_cleaned(evrec_str text, const char *expected)
{
	struct buf out = { 0 };

	assert_true(json_put_string(&out, text, 0));
	assert_string_equal(buf_cstr(&out), expected);
	buf_free(&out);
}

#define REPLACED "\xEF\xBF\xBD"

static void test_bytes_of_no_character_are_replaced(void **state)
{
	uint64_t random = unit_seed();

	(void)state;
	check_cleaned(EVREC_STR("\xFF"), "\"" REPLACED "\"");
	check_cleaned(EVREC_STR("a\n\xC3"), "\"a\\n" REPLACED "\"");
	check_cleaned(EVREC_STR("\xED\xA0\x80 is a surrogate"), "\"" REPLACED REPLACED REPLACED " is a surrogate\"");
	check_cleaned(EVREC_STR("\xC0\xA2 is overlong"), "\"" REPLACED REPLACED " is overlong\"");
	for (unsigned n = 0; n < 20000; n++) {
		struct buf out = { 0 }, clean = { 0 }, of_clean = { 0 };
		char text[24];

		for (size_t i = 0; i < sizeof(text); i++) {
			text[i] = (char)unit_random(&random);
		}
		utf8_clean(&clean, (evrec_str){ text, sizeof(text) });
		assert_true(json_put_utf8(&of_clean, buf_str(&clean), 0));
		assert_true(json_put_string(&out, (evrec_str){ text, sizeof(text) }, 0));
		assert_string_equal(buf_cstr(&out), buf_cstr(&of_clean));
		buf_free(&out);
		buf_free(&clean);
		buf_free(&of_clean);
	}
}

/* ---- memory ---- */

typedef bool put_func(struct buf *out, evrec_str text, size_t more);

/* A string is appended: the buffer keeps its earlier bytes, and has room for `more` bytes behind the string. */
static void check_reserves(put_func *put, evrec_str text, const char *expected)
{
	for (size_t more = 0; more < 300; more++) {
		struct buf out = { 0 };

		buf_put_str(&out, EVREC_STR("before:"));
		assert_true(put(&out, text, more));
		assert_true(out.cap - out.len >= more);
		assert_string_equal(buf_cstr(&out), expected);
		buf_free(&out);
	}
}

static void test_room_behind_a_string_is_reserved(void **state)
{
	(void)state;
	check_reserves(json_put_utf8, EVREC_STR("plain"), "before:\"plain\"");
	check_reserves(json_put_utf8, EVREC_STR("a\x1F"), "before:\"a\\u001F\"");
	check_reserves(json_put_string, EVREC_STR("\xFF"), "before:\"" REPLACED "\"");
}

/* Puts the text into a buffer that cannot grow, of each size until the text fits. Returns that size. */
static size_t check_fixed(put_func *put, evrec_str text, const char *expected)
{
	for (size_t size = 0;; size++) {
		char *memory = malloc(size + 1); /* a sanitizer sees the byte behind it */
		struct buf out = { .data = memory, .cap = size, .is_fixed = true };
		const bool fits = put(&out, text, 0);

		memory[size] = '#';
		assert_int_equal(fits, !out.failed);
		assert_int_equal(out.len, fits ? strlen(expected) : 0);
		assert_true(!fits || memcmp(memory, expected, out.len) == 0);
		assert_false(fits && put(&out, text, size)); /* a second one does not */
		assert_true(!fits || out.failed);
		free(memory);
		if (fits) {
			return size;
		}
	}
}

/* A string that needs an escape may need six bytes for each of its own; another one has its quotes and a NUL. */
static void test_string_is_not_written_to_too_little_room(void **state)
{
	(void)state;
	assert_int_equal(check_fixed(json_put_utf8, EVREC_STR(""), "\"\""), 3);
	assert_int_equal(check_fixed(json_put_utf8, EVREC_STR("plain"), "\"plain\""), 8);
	assert_in_range(check_fixed(json_put_utf8, EVREC_STR("\n\""), "\"\\n\\\"\""), 7, 15);
	assert_int_equal(check_fixed(json_put_utf8, EVREC_STR("\x01\x02"), "\"\\u0001\\u0002\""), 15);
	assert_in_range(check_fixed(json_put_string, EVREC_STR("\xFF"), "\"" REPLACED "\""), 6, 21);
}

/* Each allocation fails once: the string's own, and that of the cleaned text. */
static void test_string_without_memory_fails(void **state)
{
	struct unit_allocator memory = { 0 };
	size_t fail_at = 0;
	bool ok;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	do {
		struct buf out = { 0 };

		memory = (struct unit_allocator){ .fail_at = ++fail_at };
		ok = json_put_string(&out, EVREC_STR("no UTF-8: \xFF"), 100);
		assert_int_equal(ok, memory.calls < fail_at);
		assert_int_equal(out.failed, !ok);
		/* A failure lasts. */
		assert_int_equal(json_put_utf8(&out, EVREC_STR("x"), 0), ok);
		buf_free(&out);
	} while (!ok);
	assert_true(fail_at > 2);
	evrec_set_allocator(NULL, NULL);
}

/* ---- numbers ---- */

/* In a buffer with JSON_NUMBER_MAX bytes of room, and not one more. */
static void check_number(uint64_t number)
{
	char expected[32], *memory = malloc(1 + JSON_NUMBER_MAX);
	struct buf out = { .data = memory, .len = 1, .cap = 1 + JSON_NUMBER_MAX, .is_fixed = true };
	const int len = snprintf(expected, sizeof(expected), "#%" PRIu64, number);

	memory[0] = '#';
	json_put_number(&out, number);
	assert_int_equal(out.len, len);
	assert_memory_equal(memory, expected, (size_t)len);
	free(memory);
}

static void test_numbers_have_all_their_digits(void **state)
{
	(void)state;
	check_number(0);
	check_number(UINT64_MAX);
	check_number(INT64_MAX);
	check_number((uint64_t)INT64_MAX + 1);
	check_number(UINT32_MAX);
	for (uint64_t power = 1;; power *= 10) {
		check_number(power - 1);
		check_number(power);
		check_number(power + 1);
		if (power > UINT64_MAX / 10) {
			break;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_ascii_character_is_as_of_jansson),
		cmocka_unit_test(test_each_character_is_as_of_jansson),
		cmocka_unit_test(test_random_text_is_as_of_jansson),
		cmocka_unit_test(test_bytes_of_no_character_are_replaced),
		cmocka_unit_test(test_room_behind_a_string_is_reserved),
		cmocka_unit_test(test_string_is_not_written_to_too_little_room),
		cmocka_unit_test(test_string_without_memory_fails),
		cmocka_unit_test(test_numbers_have_all_their_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
