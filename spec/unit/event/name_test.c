/* DNS labels and subdomains (RFC 1123), compared with a check of one character after the other. */
#include "unit.h"

#include "event/event.h"

#define LEN_MAX 256

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Whether the bytes are letters, digits and hyphens, and neither the first nor the last one is a hyphen. */
static bool is_label(const char *text, size_t len)
{
	bool ok = len != 0 && text[0] != '-' && text[len - 1] != '-';

	for (size_t i = 0; i < len && ok; i++) {
		ok = is_alphanumeric(text[i]) || text[i] == '-';
	}
	return ok;
}

static bool is_subdomain(const char *text, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '.') {
			if (!is_label(text + start, i - start)) {
				return false;
			}
			start = i + 1;
		}
	}
	return len <= 253 && is_label(text + start, len - start);
}

/* In a block of its own, so that a sanitizer sees a read beyond the end. */
static void check(const char *text, size_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	const evrec_str s = { copy, len };

	assert_non_null(copy);
	memcpy(copy, text, len);
	assert_int_equal(is_dns_label(s), len <= 63 && is_label(text, len));
	assert_int_equal(is_dns_subdomain(s), is_subdomain(text, len));
	free(copy);
}

static void test_each_byte_in_each_place(void **state)
{
	char text[40];

	(void)state;
	for (size_t len = 1; len <= sizeof(text); len++) {
		for (size_t at = 0; at < len; at++) {
			for (int byte = 0; byte < 256; byte++) {
				memset(text, 'a', len);
				text[at] = (char)byte;
				check(text, len);
			}
		}
	}
	check("", 0);
}

static void test_dots_and_hyphens_in_all_places(void **state)
{
	static const char bytes[] = { 'a', '.', '-' };
	char text[10];

	(void)state;
	for (size_t len = 1; len <= sizeof(text); len++) {
		unsigned all = 1;

		for (size_t i = 0; i < len; i++) {
			all *= sizeof(bytes);
		}
		for (unsigned n = 0; n < all; n++) {
			unsigned rest = n;

			for (size_t i = 0; i < len; i++, rest /= sizeof(bytes)) {
				text[i] = bytes[rest % sizeof(bytes)];
			}
			check(text, len);
		}
	}
}

static void test_random_bytes_and_lengths(void **state)
{
	static const char bytes[] = "az09-..,/:`{\x00\x80\xad\xff";
	uint64_t seed = unit_seed();
	char text[LEN_MAX];

	(void)state;
	for (int n = 0; n < 200000; n++) {
		const size_t len = unit_random(&seed) % (n % 100 == 0 ? LEN_MAX : 24);
		/* Few of the bytes in most, so that some are names. */
		const uint64_t of = n % 2 == 0 ? 7 : sizeof(bytes) - 1;

		for (size_t i = 0; i < len; i++) {
			text[i] = unit_random(&seed) % 4 != 0 ? 'm' : bytes[unit_random(&seed) % of];
		}
		check(text, len);
	}
	for (size_t len = 60; len < LEN_MAX; len++) {
		memset(text, 'x', len);
		check(text, len);
		text[len / 2] = '.';
		check(text, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_byte_in_each_place),
		cmocka_unit_test(test_dots_and_hyphens_in_all_places),
		cmocka_unit_test(test_random_bytes_and_lengths),
	};

	return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
