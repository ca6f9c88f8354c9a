/* Names of events, cleaning of text, and checks of the fields that a caller gives. */
#include "unit.h"

#include "base/utf8.h"
#include "event/event.h"

static const char *name_of(struct buf *out, const char *reference, int64_t now)
{
	buf_clear(out);
	name_make(out, str_from(reference), now);
	return buf_cstr(out);
}

static void test_names_are_unique_and_bounded(void **state)
{
	struct buf a = { 0 }, b = { 0 };
	char long_name[255];
	int i;

	(void)state;
	assert_string_equal(name_of(&a, "web-0", T0), "web-0.17979cfe362a0000");
	assert_string_equal(name_of(&b, "web-0", T0), "web-0.17979cfe362a0001");
	assert_string_equal(name_of(&b, "other", T0 - 1), "other.17979cfe3629ffff");
	assert_string_equal(name_of(&b, "other", T0 + 1), "other.17979cfe362a0001");
	memset(long_name, 'a', sizeof(long_name));
	long_name[236] = '\0';
	assert_int_equal(strlen(name_of(&a, long_name, T0)), 253);
	long_name[236] = 'a';
	long_name[237] = '\0';
	assert_int_equal(strlen(name_of(&a, long_name, T0)), 36); /* one byte too long: a UUID instead */
	/* Two clocks that stand still, far before the last used time, still lead to different names. */
	for (i = 0; i < 100; i++) {
		(void)name_of(&a, "x", i % 2 == 0 ? 1000 * EVREC_SECOND : 2000 * EVREC_SECOND);
		(void)name_of(&b, "x", i % 2 == 0 ? 1000 * EVREC_SECOND : 2000 * EVREC_SECOND);
		assert_string_not_equal(buf_cstr(&a), buf_cstr(&b));
	}
	/* Even in the last nanosecond of the clock. */
	assert_string_equal(name_of(&a, "x", INT64_MAX), "x.7fffffffffffffff");
	assert_string_equal(name_of(&b, "x", INT64_MAX), "x.8000000000000000");
	buf_free(&a);
	buf_free(&b);
}

static void test_unsafe_names_become_uuids(void **state)
{
	static const char *const unsafe[] = { "",        "..",  "../../secrets/x",
		                              "a/b",     "%2e", "fe80::1",
		                              "Upper",   "-a",  "a-",
		                              "a..b",    "a_b", "a b",
		                              "a.-b",    ".a",  "a\n",
		                              "\xC3\xA9" };
	struct buf out = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		const char *name = name_of(&out, unsafe[i], T0);

		assert_int_equal(strlen(name), 36);
		assert_int_equal(strspn(name, "0123456789abcdef-"), 36);
		assert_int_equal(name[14], '4');
	}
	assert_int_equal(strlen(name_of(&out, "x", -1)), 36);
	buf_free(&out);
}

static void check_cut(const char *in, size_t max, const char *out)
{
	struct buf scratch = { 0 };
	evrec_str s = text_clean(str_from(in), max, &scratch);

	assert_true(str_eq(s, str_from(out)));
	assert_true(s.len <= max);
	buf_free(&scratch);
}

static void test_text_is_cleaned_and_cut(void **state)
{
	struct buf scratch = { 0 };
	const evrec_str plain = EVREC_STR("0123456789abcdef");

	(void)state;
	assert_ptr_equal(text_clean(plain, 16, &scratch).data, plain.data); /* clean text is not copied */
	check_cut("0123456789abcdefg", 16, "0123456789abc" CUT_MARK);
	check_cut("0123456789ab\xE2\x82\xAC"
	          "cd",
	          16, "0123456789ab" CUT_MARK);
	check_cut("\xFF", 16, "\xEF\xBF\xBD");
	check_cut("\xFF\xFF\xFF\xFF\xFF\xFF", 16, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" CUT_MARK);
	buf_free(&scratch);
}

static void test_random_text_becomes_valid_utf8(void **state)
{
	uint64_t seed = unit_seed();
	struct buf scratch = { 0 };
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		char bytes[64];
		size_t i, len = unit_random(&seed) % sizeof(bytes), max = 16 + unit_random(&seed) % 40;
		evrec_str in = { bytes, len }, out;

		for (i = 0; i < len; i++) {
			uint64_t r = unit_random(&seed);

			bytes[i] = (char)(r % 4 == 0 ? "\xE2\x82\xAC\xF0\x9F\x98\x80\xC3"[r / 4 % 8] : (int)(r >> 8));
		}
		out = text_clean(in, max, &scratch);
		assert_true(utf8_valid(out));
		assert_true(out.len <= max);
		assert_true(!utf8_valid(in) || len > max || str_eq(in, out));
	}
	buf_free(&scratch);
}

static void check_refused(evrec_reference r, const char *message)
{
	evrec_error err = { 0 };

	assert_int_equal(check_reference(&r, "regarding", &err), EVREC_EINVALID);
	assert_string_equal(err.message, message);
}

static void test_invalid_fields_are_refused(void **state)
{
	evrec_reference good = { .kind = EVREC_STR("Pod") };
	evrec_reference r = good;
	evrec_error err;
	char *big = calloc(1, 2000);

	(void)state;
	assert_int_equal(check_reference(&good, "regarding", &err), 0);
	r.kind.len = 0;
	check_refused(r, "regarding.kind: must not be empty");
	r.kind = (evrec_str){ "P\0d", 3 };
	check_refused(r, "regarding.kind: has a NUL byte");
	r.kind = EVREC_STR("P\xFF");
	check_refused(r, "regarding.kind: not valid UTF-8");
	r = good;
	r.ns = EVREC_STR("../x");
	check_refused(r, "regarding.namespace: not a namespace's name");
	r = good;
	memset(big, 'x', 2000);
	r.name = (evrec_str){ big, 1025 };
	check_refused(r, "regarding.name: 1025 bytes, more than 1024");
	assert_int_equal(check_type(EVREC_STR("Normal"), &err), 0);
	assert_int_equal(check_type(EVREC_STR("Warning"), &err), 0);
	assert_int_equal(check_type(EVREC_STR("Error"), &err), EVREC_EINVALID);
	assert_int_equal(check_type(EVREC_STR("normal"), &err), EVREC_EINVALID);
	free(big);
}

static void test_annotations_are_checked(void **state)
{
	char *big = malloc(ANNOTATIONS_MAX);
	evrec_pair pair = { EVREC_STR("k"), { big, ANNOTATIONS_MAX - 1 } };
	evrec_error err;

	(void)state;
	memset(big, 'x', ANNOTATIONS_MAX);
	assert_int_equal(check_map((evrec_map){ &pair, 1 }, "annotations", &err), 0);
	pair.value.len++;
	assert_int_equal(check_map((evrec_map){ &pair, 1 }, "annotations", &err), EVREC_EINVALID);
	assert_string_equal(err.message, "annotations: more than 262144 bytes");
	pair = (evrec_pair){ { "k\0", 2 }, EVREC_STR("") };
	assert_int_equal(check_map((evrec_map){ &pair, 1 }, "annotations", &err), EVREC_EINVALID);
	pair.key = EVREC_STR("");
	assert_int_equal(check_map((evrec_map){ &pair, 1 }, "annotations", &err), EVREC_EINVALID);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_unique_and_bounded),
		cmocka_unit_test(test_unsafe_names_become_uuids),
		cmocka_unit_test(test_text_is_cleaned_and_cut),
		cmocka_unit_test(test_random_text_becomes_valid_utf8),
		cmocka_unit_test(test_invalid_fields_are_refused),
		cmocka_unit_test(test_annotations_are_checked),
	};

	return cmocka_run_group_tests_name("event checks", tests, NULL, NULL);
}
