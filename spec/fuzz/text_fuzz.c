/* Messages of any bytes: checked for UTF-8, cleaned, cut. */
#include "fuzz.h"

#include "base/utf8.h"
#include "event/event.h"

/* A slow cleaner: every byte that is not a part of a character becomes U+FFFD. */
static void clean_slowly(struct buf *out, evrec_str s)
{
	while (s.len != 0) {
		size_t len = fuzz_character(s);

		buf_put(out, len == 0 ? "\xEF\xBF\xBD" : s.data, len == 0 ? 3 : len);
		len = len == 0 ? 1 : len;
		s.data += len;
		s.len -= len;
	}
}

static void check_clean(evrec_str text, struct buf *cleaned)
{
	struct buf slowly = { 0 }, again = { 0 };

	utf8_clean(cleaned, text);
	clean_slowly(&slowly, text);
	utf8_clean(&again, buf_str(cleaned));
	CHECK(fuzz_is_utf8(buf_str(cleaned)));
	CHECK(str_eq(buf_str(cleaned), buf_str(&slowly)));
	CHECK(str_eq(buf_str(cleaned), buf_str(&again)));
	CHECK(!fuzz_is_utf8(text) || str_eq(buf_str(cleaned), text));
	buf_free(&slowly);
	buf_free(&again);
}

/* A slow cutter: the longest prefix of whole characters that fits. */
static void check_floor(evrec_str clean, size_t max)
{
	size_t len = utf8_floor(clean, max);

	CHECK(len <= max && len <= clean.len);
	CHECK(fuzz_is_utf8((evrec_str){ clean.data, len }));
	CHECK(len == clean.len || len + fuzz_character((evrec_str){ clean.data + len, clean.len - len }) > max);
}

static void check_cut(evrec_str text, evrec_str clean, size_t max)
{
	const evrec_str mark = EVREC_STR(CUT_MARK);
	struct buf scratch = { 0 }, again = { 0 };
	evrec_str cut = text_clean(text, max, &scratch);

	CHECK(cut.len <= max);
	CHECK(fuzz_is_utf8(cut));
	if (clean.len <= max) {
		CHECK(str_eq(cut, clean));
		CHECK(!fuzz_is_utf8(text) || cut.data == text.data);
	} else {
		size_t kept = utf8_floor(clean, max - mark.len);

		CHECK(cut.len == kept + mark.len);
		CHECK(memcmp(cut.data, clean.data, kept) == 0);
		CHECK(memcmp(cut.data + kept, mark.data, mark.len) == 0);
	}
	CHECK(str_eq(text_clean(cut, max, &again), cut));
	buf_free(&scratch);
	buf_free(&again);
}

static void check_message(evrec_str clean)
{
	evrec_error err;
	struct buf text = { 0 };

	buf_put_str(&text, clean);
	(void)error_set(&err, EVREC_EINVALID, "%s", buf_cstr(&text));
	CHECK(strlen(err.message) < sizeof(err.message));
	CHECK(fuzz_is_utf8(str_from(err.message)));
	CHECK(strncmp(err.message, buf_cstr(&text), strlen(err.message)) == 0);
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	/* max_message_bytes is at least 16. */
	size_t max = 16 + input_byte(&in) % 48;
	evrec_str text = input_rest(&in);
	struct buf clean = { 0 };

	CHECK(utf8_valid(text) == fuzz_is_utf8(text));
	check_clean(text, &clean);
	check_floor(buf_str(&clean), max - 16);
	check_floor(buf_str(&clean), max);
	check_cut(text, buf_str(&clean), max);
	check_message(buf_str(&clean));
	buf_free(&clean);
	input_end(&in);
	return 0;
}
