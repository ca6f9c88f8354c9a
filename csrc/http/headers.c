#include "http/headers.h"

#include "base/line.h"
#include "base/utf8.h"

#include <strings.h>

#define NAME_SHOWN 60 /* bytes of it in a message */

/*
 * Headers that libcurl sets itself, connection-specific headers (RFC 9110, 7.6.1), and Accept-Encoding: the client
 * decompresses no answer.
 */
static const char *const own_names[] = { "Accept-Encoding",
	                                 "Connection",
	                                 "Content-Encoding",
	                                 "Content-Length",
	                                 "Content-Type",
	                                 "Expect",
	                                 "Host",
	                                 "Keep-Alive",
	                                 "Proxy-Connection",
	                                 "TE",
	                                 "Trailer",
	                                 "Transfer-Encoding",
	                                 "Upgrade" };

static bool same_name(evrec_str a, evrec_str b)
{
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static bool is_alphanumeric(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_token(evrec_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] == '\0' ||
		    (!is_alphanumeric(name.data[i]) && strchr("!#$%&'*+-.^_`|~", name.data[i]) == NULL)) {
			return false;
		}
	}
	return name.len != 0;
}

static bool is_own(evrec_str name)
{
	for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++) {
		if (same_name(name, str_from(own_names[i]))) {
			return true;
		}
	}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_value(evrec_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		const unsigned char c = (unsigned char)value.data[i];

		if ((c < ' ' && c != '\t') || c == 0x7f) {
			return false;
		}
	}
	return value.len == 0 || (!is_blank(value.data[0]) && !is_blank(value.data[value.len - 1]));
}

static bool is_repeated(const evrec_map *headers, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (same_name(headers->pairs[j].key, headers->pairs[i].key)) {
			return true;
		}
	}
	return false;
}

int headers_check(const evrec_map *headers, evrec_error *err)
{
	if (headers->len > HEADERS_MAX) {
		return error_set(err, EVREC_EINVALID, "headers: %d at most", HEADERS_MAX);
	}
	for (size_t i = 0; i < headers->len; i++) {
		const evrec_str name = headers->pairs[i].key;
		const int shown = name.len < NAME_SHOWN ? (int)name.len : NAME_SHOWN;

		/* It may be a value in the wrong place: not shown. */
		if (!is_token(name)) {
			return error_set(err, EVREC_EINVALID, "headers: number %zu: its name is not a header's name",
			                 i + 1);
		}
		if (is_own(name)) {
			return error_set(err, EVREC_EINVALID, "headers: %.*s is evrec's to set", shown, name.data);
		}
		if (is_repeated(headers, i)) {
			return error_set(err, EVREC_EINVALID, "headers: %.*s is there twice", shown, name.data);
		}
		if (!is_value(headers->pairs[i].value)) {
			return error_set(err, EVREC_EINVALID,
			                 "headers: %.*s: a control character in the value, or a space at an end of it",
			                 shown, name.data);
		}
	}
	return 0;
}

/* The text after the first word; unset if there is none. */
static evrec_str behind_scheme(evrec_str value)
{
	const char *space = value.len == 0 ? NULL : memchr(value.data, ' ', value.len);
	size_t from = space == NULL ? value.len : (size_t)(space - value.data);

	while (from < value.len && is_blank(value.data[from])) {
		from++;
	}
	return (evrec_str){ value.data + from, value.len - from };
}

static void hide_value(char *text, evrec_str value)
{
	secret_hide(text, value);
	secret_hide(text, behind_scheme(value));
}

/* utf8_line changes such a value. */
static bool is_changed_in_a_line(evrec_str value)
{
	return memchr(value.data, '\t', value.len) != NULL || !utf8_valid(value);
}

/* Hides the value as utf8_line has made it; without memory all of the text. */
static void hide_changed_value(char *text, evrec_str value)
{
	struct buf changed = { 0 };

	utf8_clean(&changed, value);
	if (changed.failed) {
		memset(text, '*', strlen(text));
	} else {
		for (size_t i = 0; i < changed.len; i++) {
			if (changed.data[i] == '\t') {
				changed.data[i] = ' ';
			}
		}
		hide_value(text, buf_str(&changed));
	}
	buf_free(&changed);
}

void headers_hide(const evrec_map *headers, char *text)
{
	for (size_t i = 0; i < headers->len; i++) {
		const evrec_str value = headers->pairs[i].value;

		if (value.len != 0) {
			hide_value(text, value);
			if (is_changed_in_a_line(value)) {
				hide_changed_value(text, value);
			}
		}
	}
}
