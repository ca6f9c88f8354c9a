#include "base/json_tokens.h"

#include "base/json_text.h"
#include "base/utf8.h"

#include <endian.h>
#include <limits.h>

#define DEPTH_MAX 32  /* of values that are skipped */
#define DIGITS_MAX 18 /* of a number that certainly fits */

/* ---- tokens ---- */

static bool take_word(struct json_tokens *t, evrec_str word)
{
	if (json_next_byte(t) != word.data[0] || (size_t)(t->end - t->at) < word.len ||
	    memcmp(t->at, word.data, word.len) != 0) {
		return false;
	}
	t->at += word.len;
	return true;
}

/* The byte that a backslash and `letter` stand for; NUL: that takes more bytes than this letter, or means nothing. */
static char unescaped(char letter)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *found = letter == '\0' ? NULL : strchr(letters, letter);

	if (found == NULL) {
		return '\0';
	}
	return bytes[found - letters];
}

static bool unescape(struct json_tokens *t, evrec_str *text)
{
	char *to = json_room_take(t->room, text->len);
	size_t len = 0;

	if (to == NULL) {
		return false;
	}
	for (size_t i = 0; i < text->len; i++) {
		to[len] = text->data[i];
		if (to[len] == '\\') {
			to[len] = unescaped(text->data[++i]);
			if (to[len] == '\0') {
				return false;
			}
		}
		len++;
	}
	*text = (evrec_str){ to, len };
	return true;
}

bool json_take_string(struct json_tokens *t, evrec_str *text)
{
	bool escaped = false, plain = true;
	uint64_t special = 0;
	const char *p;

	if (!json_take(t, '"')) {
		return false;
	}
	/* Eight bytes at once, up to the first special one: in little-endian order it has the lowest bit. */
	for (p = t->at; special == 0 && t->end - p >= (ptrdiff_t)sizeof(uint64_t);) {
		special = json_special_bytes(le64toh(bytes_load8(p)));
		p += special == 0 ? sizeof(uint64_t) : (size_t)__builtin_ctzll(special) / CHAR_BIT;
	}
	for (; p < t->end && *p != '"'; p++) {
		plain = plain && (signed char)*p >= 0;
		if ((unsigned char)*p < ' ') {
			return false;
		}
		if (*p == '\\') {
			escaped = true;
			p++; /* unescape() takes ASCII letters alone */
		}
	}
	if (p >= t->end) {
		return false;
	}
	*text = (evrec_str){ t->at, (size_t)(p - t->at) };
	t->at = p + 1;
	return (plain || utf8_valid(*text)) && (!escaped || unescape(t, text));
}

bool json_begins_number(char byte)
{
	return byte == '-' || (byte >= '0' && byte <= '9');
}

bool json_take_integer(struct json_tokens *t, int64_t *number)
{
	const bool negative = json_take(t, '-');
	const char *start = t->at;

	for (*number = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9' && t->at - start < DIGITS_MAX; t->at++) {
		*number = *number * 10 + (*t->at - '0');
	}
	if (t->at == start || (*start == '0' && t->at - start > 1)) {
		return false;
	}
	*number = negative ? -*number : *number;
	return true; /* if digits, a fraction or an exponent follow, no end of a value does */
}

/* ---- objects and arrays ---- */

enum json_step json_next_element(struct json_tokens *t, char close, bool first)
{
	if (json_take(t, close)) {
		return JSON_STEP_END;
	}
	return first || json_take(t, ',') ? JSON_STEP_VALUE : JSON_STEP_BROKEN;
}

enum json_step json_next_member(struct json_tokens *t, bool first, evrec_str *key)
{
	const enum json_step step = json_next_element(t, '}', first);

	return step != JSON_STEP_VALUE || (json_take_string(t, key) && json_take(t, ':')) ? step : JSON_STEP_BROKEN;
}

bool json_take_key(struct json_tokens *t, evrec_str key)
{
	const char *at = t->at;

	if ((size_t)(t->end - at) < key.len + 3 || *at != '"' || memcmp(at + 1, key.data, key.len) != 0 ||
	    at[key.len + 1] != '"' || at[key.len + 2] != ':') {
		return false;
	}
	t->at += key.len + 3;
	return true;
}

bool json_skip_rest(struct json_tokens *t, char close, unsigned depth, size_t *n)
{
	evrec_str key;

	for (*n = 0; depth < DEPTH_MAX; ++*n) {
		switch (close == '}' ? json_next_member(t, *n == 0, &key) : json_next_element(t, close, *n == 0)) {
		case JSON_STEP_END:
			return true;
		case JSON_STEP_BROKEN:
			return false;
		case JSON_STEP_VALUE:
			break;
		}
		if (!json_skip_value(t, depth + 1)) {
			return false;
		}
	}
	return false;
}

bool json_skip_value(struct json_tokens *t, unsigned depth)
{
	evrec_str text;
	int64_t number;
	size_t n;

	switch (json_next_byte(t)) {
	case '"':
		return json_take_string(t, &text);
	case '{':
		t->at++;
		return json_skip_rest(t, '}', depth, &n);
	case '[':
		t->at++;
		return json_skip_rest(t, ']', depth, &n);
	case 't':
		return take_word(t, EVREC_STR("true"));
	case 'f':
		return take_word(t, EVREC_STR("false"));
	case 'n':
		return take_word(t, EVREC_STR("null"));
	default:
		return json_begins_number(json_next_byte(t)) && json_take_integer(t, &number);
	}
}
