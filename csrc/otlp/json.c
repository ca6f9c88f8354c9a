/* The JSON of opentelemetry-proto 1.x (its README says how protobuf's JSON differs). */
#include "base/short_bytes.h"
#include "base/utf8.h"
#include "otlp/encoder.h"

/* The most bytes that a byte of a string becomes: \u001F */
#define ESCAPED_MAX 6
#define DIGITS_MAX 20

#define PUT(out, literal) otlp_append(out, literal, sizeof(literal) - 1)

/*
 * True: JSON escapes a byte of the word, one below ' ', a '"' or a '\\'. Such a byte sets its high bit in one of the terms; a byte
 * of a character that is not ASCII is masked.
 */
static bool needs_escape(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	const uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';

	return (((word - ones * ' ') | (quote - ones) | (backslash - ones)) & ~word & highs) != 0;
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

static char *put_text(char *at, evrec_str text)
{
	const char *from = text.data, *end = from + text.len;

	while (end - from >= (ptrdiff_t)sizeof(uint64_t)) {
		const char *part = from + sizeof(uint64_t);

		if (!needs_escape(bytes_load8(from))) {
			memcpy(at, from, sizeof(uint64_t));
			at += sizeof(uint64_t);
			from = part;
			continue;
		}
		while (from < part) {
			at = put_escaped(at, *from++);
		}
	}
	while (from < end) {
		at = put_escaped(at, *from++);
	}
	return at;
}

/* Appends a string of UTF-8 with its quotes, and reserves room for `more` bytes behind it. False: no memory. */
static bool put_utf8(struct buf *out, evrec_str text, size_t more)
{
	char *at;

	if (text.len > SIZE_MAX / 2 / ESCAPED_MAX || !buf_reserve(out, text.len * ESCAPED_MAX + 2 + more)) {
		out->failed = true;
		return false;
	}
	at = out->data + out->len;
	*at++ = '"';
	at = text.len == 0 ? at : put_text(at, text);
	*at++ = '"';
	out->len = (size_t)(at - out->data);
	return true;
}

static COLD bool put_cleaned(struct buf *out, evrec_str text, size_t more)
{
	struct buf clean = { 0 };

	utf8_clean(&clean, text);
	out->failed = out->failed || clean.failed;
	(void)put_utf8(out, buf_str(&clean), more);
	buf_free(&clean);
	return !out->failed;
}

/* Likewise, of any bytes. */
static bool put_string(struct buf *out, evrec_str text, size_t more)
{
	return utf8_plain(text) || utf8_valid(text) ? put_utf8(out, text, more) : put_cleaned(out, text, more);
}

static void put_number(struct buf *out, uint64_t number)
{
	char digits[DIGITS_MAX], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	otlp_append(out, at, (size_t)(digits + sizeof(digits) - at));
}

/* The literals of an attribute, and a number: all but its strings. */
#define AROUND_ATTRIBUTE 80

static void put_attribute(struct buf *out, const struct otlp_attribute *attribute)
{
	if (!buf_reserve(out, AROUND_ATTRIBUTE)) {
		return;
	}
	PUT(out, "{\"key\":");
	if (!put_utf8(out, attribute->name, AROUND_ATTRIBUTE)) {
		return;
	}
	if (attribute->text.data == NULL) {
		PUT(out, ",\"value\":{\"intValue\":\"");
		put_number(out, (uint64_t)attribute->number);
		PUT(out, "\"}}");
		return;
	}
	PUT(out, ",\"value\":{\"stringValue\":");
	if (put_string(out, attribute->text, AROUND_ATTRIBUTE)) {
		PUT(out, "}}");
	}
}

static void put_list(struct buf *out, const struct otlp_attribute *attributes, size_t n, bool is_first)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_first) {
			buf_put(out, ",", 1);
		}
		put_attribute(out, &attributes[i]);
		is_first = false;
	}
}

static void put_attributes(struct buf *out, const struct otlp_attribute *attributes, size_t n)
{
	put_list(out, attributes, n, out->len == 0);
}

/* A member whose value is a number in quotes, with a comma before it. */
static void put_time(struct buf *out, evrec_str member, uint64_t time)
{
	if (time != 0 && buf_reserve(out, member.len + DIGITS_MAX + 1)) {
		otlp_append(out, member.data, member.len);
		put_number(out, time);
		PUT(out, "\"");
	}
}

static void put_log(struct buf *out, const struct otlp_log *log)
{
	const size_t start = out->len;

	/* Each member begins with a comma; that of the first one becomes the brace. */
	put_time(out, EVREC_STR(",\"timeUnixNano\":\""), log->time);
	put_time(out, EVREC_STR(",\"observedTimeUnixNano\":\""), log->observed);
	if (log->severity != 0 && buf_reserve(out, AROUND_ATTRIBUTE)) {
		PUT(out, ",\"severityNumber\":");
		put_number(out, (uint64_t)log->severity);
	}
	if (log->severity_text.len != 0) {
		buf_put_str(out, EVREC_STR(",\"severityText\":"));
		(void)put_string(out, log->severity_text, 0);
	}
	if (log->body.len != 0) {
		buf_put_str(out, EVREC_STR(",\"body\":{\"stringValue\":"));
		(void)put_string(out, log->body, 0);
		buf_put_str(out, EVREC_STR("}"));
	}
	buf_put_str(out, EVREC_STR(",\"attributes\":["));
	put_list(out, log->attributes, log->attributes_len, true);
	buf_put_str(out, EVREC_STR("]}"));
	if (!out->failed) {
		out->data[start] = '{';
	}
}

static void begin_group(struct otlp_body *body, evrec_str attributes, evrec_str log)
{
	struct buf *out = &body->bytes;
	const evrec_str common = buf_str(&body->common);

	if (body->records == 0) {
		PUT(out, "{\"resourceLogs\":[");
	} else {
		PUT(out, "]}]},");
	}
	PUT(out, "{\"resource\":{\"attributes\":[");
	otlp_append(out, common.data, common.len);
	if (common.len != 0 && attributes.len != 0) {
		PUT(out, ",");
	}
	body->attributes = out->len;
	body->attributes_len = attributes.len;
	otlp_append(out, attributes.data, attributes.len);
	PUT(out,
	    "]},\"scopeLogs\":[{\"scope\":{\"name\":\"evrec\",\"version\":\"" EVREC_VERSION "\"},\"logRecords\":[");
	otlp_append(out, log.data, log.len);
}

static void join_group(struct otlp_body *body, evrec_str log)
{
	PUT(&body->bytes, ",");
	otlp_append(&body->bytes, log.data, log.len);
}

const struct otlp_encoder otlp_json = {
	.content_type = "application/json",
	.put_attributes = put_attributes,
	.put_log = put_log,
	.begin_group = begin_group,
	.join_group = join_group,
	.end = { "]}]}]}", 6 },
	.empty = { "{}", 2 },
};
