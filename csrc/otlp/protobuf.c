/*
 * The protobuf of opentelemetry-proto 1.x. Each length is exact and as short as can be. A LogRecord is encoded before its
 * length is written. A ResourceLogs grows: its length is changed in place, and the bytes after it are moved if the
 * length takes one byte more, which is rare.
 */
#include "base/short_bytes.h"
#include "base/utf8.h"
#include "otlp/encoder.h"

/* A field's number and wire type, in one byte. */
#define TAG(number, type) ((char)((number) << 3 | (type)))
#define VARINT 0
#define FIXED64 1
#define LEN 2

#define REQUEST_RESOURCE_LOGS TAG(1, LEN)
#define RESOURCE_LOGS_RESOURCE TAG(1, LEN)
#define RESOURCE_LOGS_SCOPE_LOGS TAG(2, LEN)
#define RESOURCE_ATTRIBUTES TAG(1, LEN)
#define SCOPE_LOGS_LOG_RECORDS TAG(2, LEN)
#define LOG_TIME TAG(1, FIXED64)
#define LOG_SEVERITY TAG(2, VARINT)
#define LOG_SEVERITY_TEXT TAG(3, LEN)
#define LOG_BODY TAG(5, LEN)
#define LOG_ATTRIBUTES TAG(6, LEN)
#define LOG_OBSERVED TAG(11, FIXED64)
#define KEY_VALUE_KEY TAG(1, LEN)
#define KEY_VALUE_VALUE TAG(2, LEN)
#define ANY_STRING TAG(1, LEN)
#define ANY_INT TAG(3, VARINT)

/* ScopeLogs.scope: its name, and its version. */
#define SCOPE_NAME "evrec"
#define SCOPE_LEN (2 + sizeof(SCOPE_NAME) - 1 + 2 + sizeof(EVREC_VERSION) - 1)
static const char scope_head[] = { TAG(1, LEN), SCOPE_LEN, TAG(1, LEN), sizeof(SCOPE_NAME) - 1 };
static const char scope_between[] = { TAG(2, LEN), sizeof(EVREC_VERSION) - 1 };
#define SCOPE_SIZE (2 + SCOPE_LEN)
_Static_assert(SCOPE_LEN < 0x80, "the length of the scope is one byte");

/* The most bytes of a tag and a length. */
#define HEAD 11

static size_t varint_size(uint64_t value)
{
	return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

static char *put_varint(char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (char)value;
	return at;
}

/* A tag and a length, or a tag and a varint. */
static char *put_head(char *at, char tag, uint64_t value)
{
	*at++ = tag;
	return put_varint(at, value);
}

static char *put_bytes(char *at, char tag, evrec_str bytes)
{
	at = put_head(at, tag, bytes.len);
	bytes_copy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

static char *put_fixed64(char *at, char tag, uint64_t value)
{
	*at++ = tag;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		*at++ = (char)(value >> shift);
	}
	return at;
}

/* The size of a field with `len` bytes. */
static size_t field_size(size_t len)
{
	return 1 + varint_size(len) + len;
}

static void end_at(struct buf *out, const char *at)
{
	out->len = (size_t)(at - out->data);
}

static void put_attribute(struct buf *out, char tag, const struct otlp_attribute *attribute);

/* put_attribute with a text that is no UTF-8: cleans it first. */
static COLD void put_cleaned(struct buf *out, char tag, const struct otlp_attribute *attribute)
{
	struct otlp_attribute cleaned = *attribute;
	struct buf clean = { 0 };

	utf8_clean(&clean, attribute->text);
	cleaned.text = buf_str(&clean);
	if (clean.failed) {
		out->failed = true;
	} else {
		put_attribute(out, tag, &cleaned);
	}
	buf_free(&clean);
}

/* The bytes of a short KeyValue around its name and text: three tags and three lengths. */
#define AROUND_SHORT 6

/* A KeyValue shorter than 128 bytes: each of its lengths is one byte. It saves 940 of 7,870 instructions of an event. */
static char *put_short(char *at, char tag, evrec_str name, evrec_str text)
{
	*at++ = tag;
	*at++ = (char)(AROUND_SHORT + name.len + text.len);
	*at++ = KEY_VALUE_KEY;
	*at++ = (char)name.len;
	bytes_copy(at, name.data, name.len);
	at += name.len;
	*at++ = KEY_VALUE_VALUE;
	*at++ = (char)(2 + text.len);
	*at++ = ANY_STRING;
	*at++ = (char)text.len;
	bytes_copy(at, text.data, text.len);
	return at + text.len;
}

/* A KeyValue. */
static void put_attribute(struct buf *out, char tag, const struct otlp_attribute *attribute)
{
	const evrec_str name = attribute->name, text = attribute->text;
	const uint64_t number = (uint64_t)attribute->number;
	const bool is_text = text.data != NULL;
	size_t any;
	char *at;

	if (is_text && !utf8_plain(text) && !utf8_valid(text)) {
		put_cleaned(out, tag, attribute);
		return;
	}
	if (!buf_reserve(out, name.len + text.len + 5 * HEAD)) {
		return;
	}
	at = out->data + out->len;
	if (is_text && AROUND_SHORT + name.len + text.len < 0x80) {
		end_at(out, put_short(at, tag, name, text));
		return;
	}
	any = is_text ? field_size(text.len) : 1 + varint_size(number);
	at = put_head(at, tag, field_size(name.len) + field_size(any));
	at = put_bytes(at, KEY_VALUE_KEY, name);
	at = put_head(at, KEY_VALUE_VALUE, any);
	if (is_text) {
		at = put_bytes(at, ANY_STRING, text);
	} else {
		*at++ = ANY_INT;
		at = put_varint(at, number);
	}
	end_at(out, at);
}

static void put_attributes(struct buf *out, const struct otlp_attribute *attributes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_attribute(out, RESOURCE_ATTRIBUTES, &attributes[i]);
	}
}

/* Appends a field that is a text; or an AnyValue of a text if `any_tag`, the field's tag, is not 0. */
static void put_text(struct buf *out, char any_tag, char tag, evrec_str text)
{
	struct buf clean = { 0 };
	char *at;

	if (!utf8_plain(text) && !utf8_valid(text)) {
		utf8_clean(&clean, text);
		text = buf_str(&clean);
	}
	if (clean.failed || !buf_reserve(out, text.len + 2 * HEAD)) {
		out->failed = true;
	} else {
		at = out->data + out->len;
		at = any_tag != 0 ? put_head(at, any_tag, field_size(text.len)) : at;
		end_at(out, put_bytes(at, tag, text));
	}
	buf_free(&clean);
}

static void put_time(struct buf *out, char tag, uint64_t time)
{
	if (time != 0 && buf_reserve(out, HEAD)) {
		end_at(out, put_fixed64(out->data + out->len, tag, time));
	}
}

static void put_log(struct buf *out, const struct otlp_log *log)
{
	put_time(out, LOG_TIME, log->time);
	if (log->severity != 0 && buf_reserve(out, HEAD)) {
		end_at(out, put_head(out->data + out->len, LOG_SEVERITY, (uint64_t)log->severity));
	}
	if (log->severity_text.len != 0) {
		put_text(out, 0, LOG_SEVERITY_TEXT, log->severity_text);
	}
	if (log->body.len != 0) {
		put_text(out, LOG_BODY, ANY_STRING, log->body);
	}
	for (size_t i = 0; i < log->attributes_len; i++) {
		put_attribute(out, LOG_ATTRIBUTES, &log->attributes[i]);
	}
	put_time(out, LOG_OBSERVED, log->observed);
}

static void begin_group(struct otlp_body *body, evrec_str attributes, evrec_str log)
{
	struct buf *out = &body->bytes;
	const evrec_str common = buf_str(&body->common);
	const size_t resource = common.len + attributes.len;
	const size_t scope = SCOPE_SIZE + field_size(log.len);
	char *at = out->data + out->len;

	body->group = out->len;
	at = put_head(at, REQUEST_RESOURCE_LOGS, field_size(resource) + field_size(scope));
	at = put_head(at, RESOURCE_LOGS_RESOURCE, resource);
	end_at(out, at);
	otlp_append(out, common.data, common.len);
	body->attributes = out->len;
	body->attributes_len = attributes.len;
	otlp_append(out, attributes.data, attributes.len);
	end_at(out, put_head(out->data + out->len, RESOURCE_LOGS_SCOPE_LOGS, scope));
	body->scope_len = scope;
	otlp_append(out, scope_head, sizeof(scope_head));
	otlp_append(out, SCOPE_NAME, sizeof(SCOPE_NAME) - 1);
	otlp_append(out, scope_between, sizeof(scope_between));
	otlp_append(out, EVREC_VERSION, sizeof(EVREC_VERSION) - 1);
	end_at(out, put_bytes(out->data + out->len, SCOPE_LOGS_LOG_RECORDS, log));
}

/* Replaces the length at `at`, and moves the bytes after it if the new one has another number of bytes. */
static void change_length(struct buf *out, size_t at, size_t old, size_t new)
{
	const size_t old_size = varint_size(old), new_size = varint_size(new);

	if (new_size != old_size) {
		memmove(out->data + at + new_size, out->data + at + old_size, out->len - at - old_size);
		out->len += new_size - old_size;
	}
	(void)put_varint(out->data + at, new);
}

static void join_group(struct otlp_body *body, evrec_str log)
{
	struct buf *out = &body->bytes;
	const size_t resource = field_size(body->common.len + body->attributes_len);
	const size_t old = body->scope_len, new = old + field_size(log.len);
	const size_t moved = varint_size(resource + field_size(new)) - varint_size(resource + field_size(old));

	end_at(out, put_bytes(out->data + out->len, SCOPE_LOGS_LOG_RECORDS, log));
	/* The inner length first, while its offset is still valid. */
	change_length(out, body->attributes + body->attributes_len + 1, old, new);
	change_length(out, body->group + 1, resource + field_size(old), resource + field_size(new));
	body->scope_len = new;
	body->attributes += moved;
}

const struct otlp_encoder otlp_protobuf = {
	.content_type = "application/x-protobuf",
	.put_attributes = put_attributes,
	.put_log = put_log,
	.begin_group = begin_group,
	.join_group = join_group,
};
