#include "base/json_text.h"

#include "base/short_bytes.h"
#include "base/utf8.h"

/* The most bytes that a byte of a string becomes: \u001F */
#define ESCAPED_MAX 6

#define SPACES UINT64_C(0x2020202020202020)

/* True: JSON escapes a byte of the word. A byte of a character that is not ASCII is masked. */
static bool needs_escape(uint64_t word)
{
	return (json_special_bytes(word) & ~word) != 0;
}

static char *put_escaped(char *at, char byte)
{
	static const char letters[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'
	};
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char code = (unsigned char)byte;

	if (code < sizeof(letters) && letters[code] != 0) {
		*at++ = '\\';
		*at++ = letters[code];
	} else if (code < ' ') {
		const char escape[ESCAPED_MAX] = { '\\', 'u', '0', '0', digits[code >> 4], digits[code & 15] };

		memcpy(at, escape, sizeof(escape));
		at += sizeof(escape);
	} else {
		*at++ = byte;
	}
	return at;
}

static char *put_escaped_text(char *at, evrec_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		at = put_escaped(at, text.data[i]);
	}
	return at;
}

static bool text_needs_escape(evrec_str text)
{
	size_t at = 0;

	while (text.len - at >= sizeof(uint64_t)) {
		if (needs_escape(bytes_load8(text.data + at))) {
			return true;
		}
		at += sizeof(uint64_t);
	}
	/* A filler of spaces needs none. */
	return at != text.len && needs_escape(bytes_load_short(text.data + at, text.len - at, SPACES));
}

bool json_put_utf8(struct buf *out, evrec_str text, size_t more)
{
	const bool escape = text_needs_escape(text);
	const size_t most = escape ? ESCAPED_MAX : 1;
	char *at;

	if (text.len > SIZE_MAX / 2 / ESCAPED_MAX || !buf_reserve(out, text.len * most + 2 + more)) {
		out->failed = true;
		return false;
	}
	at = out->data + out->len;
	*at++ = '"';
	if (escape) {
		at = put_escaped_text(at, text);
	} else if (text.len != 0) {
		bytes_copy(at, text.data, text.len);
		at += text.len;
	}
	*at++ = '"';
	out->len = (size_t)(at - out->data);
	return true;
}

static COLD bool put_cleaned(struct buf *out, evrec_str text, size_t more)
{
	struct buf clean = { 0 };

	utf8_clean(&clean, text);
	out->failed = out->failed || clean.failed;
	(void)json_put_utf8(out, buf_str(&clean), more);
	buf_free(&clean);
	return !out->failed;
}

bool json_put_string(struct buf *out, evrec_str text, size_t more)
{
	return utf8_plain(text) || utf8_valid(text) ? json_put_utf8(out, text, more) : put_cleaned(out, text, more);
}

void json_put_number(struct buf *out, uint64_t number)
{
	char digits[JSON_NUMBER_MAX], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	memcpy(out->data + out->len, at, (size_t)(digits + sizeof(digits) - at));
	out->len += (size_t)(digits + sizeof(digits) - at);
}
