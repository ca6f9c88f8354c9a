#include "otlp_reader.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/utf8.h"

/* ---- protobuf ---- */

struct field {
	uint64_t number, type, value;
	evrec_str bytes;
};

/* The next byte of a message, which shrinks. */
static uint64_t byte_of(evrec_str *message)
{
	assert_true(message->len != 0);
	message->len--;
	return (unsigned char)*message->data++;
}

/* A varint that is as short as can be. */
static uint64_t varint_of(evrec_str *message)
{
	uint64_t value = 0, byte = 0x80;

	for (unsigned shift = 0; byte >= 0x80; shift += 7) {
		assert_true(shift < 64);
		byte = byte_of(message);
		assert_true(byte != 0 || shift == 0);
		value |= (byte & 0x7F) << shift;
	}
	return value;
}

static struct field field_of(evrec_str *message)
{
	const uint64_t tag = varint_of(message);
	struct field field = { .number = tag >> 3, .type = tag & 7 };

	if (field.type == 0) {
		field.value = varint_of(message);
	} else if (field.type == 1) {
		for (unsigned shift = 0; shift < 64; shift += 8) {
			field.value |= byte_of(message) << shift;
		}
	} else {
		assert_int_equal(field.type, 2);
		field.value = varint_of(message);
		assert_true(field.value <= message->len);
		field.bytes = (evrec_str){ message->data, field.value };
		message->data += field.value;
		message->len -= field.value;
	}
	return field;
}

static evrec_str bytes_field(evrec_str *message, uint64_t number)
{
	const struct field field = field_of(message);

	assert_int_equal(field.number, number);
	assert_int_equal(field.type, 2);
	return field.bytes;
}

static void put_text(struct buf *out, evrec_str text)
{
	assert_true(utf8_valid(text));
	buf_put_str(out, text);
}

static void read_any(evrec_str any, struct buf *out)
{
	const struct field field = field_of(&any);

	assert_int_equal(any.len, 0);
	if (field.number == 3) {
		assert_int_equal(field.type, 0);
		buf_printf(out, "#%" PRId64, (int64_t)field.value);
		return;
	}
	assert_int_equal(field.number, 1);
	put_text(out, field.bytes);
}

static void read_attribute(evrec_str attribute, struct buf *out)
{
	put_text(out, bytes_field(&attribute, 1));
	buf_printf(out, "=");
	read_any(bytes_field(&attribute, 2), out);
	buf_printf(out, ";");
	assert_int_equal(attribute.len, 0);
}

static void read_log(evrec_str log, struct buf *out)
{
	struct buf attributes = { 0 }, observed = { 0 };
	uint64_t last = 0;

	buf_printf(out, "log");
	while (log.len != 0) {
		const struct field field = field_of(&log);

		assert_true(field.number > last || (field.number == last && last == 6));
		last = field.number;
		if (field.number == 1 && field.type == 1) {
			buf_printf(out, " time=%" PRIu64, field.value);
		} else if (field.number == 2 && field.type == 0) {
			buf_printf(&observed, " severity=%" PRIu64, field.value);
		} else if (field.number == 3 && field.type == 2) {
			buf_printf(&observed, " text=");
			put_text(&observed, field.bytes);
		} else if (field.number == 5 && field.type == 2) {
			buf_printf(&observed, " body=");
			read_any(field.bytes, &observed);
		} else if (field.number == 6 && field.type == 2) {
			read_attribute(field.bytes, &attributes);
		} else {
			assert_true(field.number == 11 && field.type == 1);
			buf_printf(out, " observed=%" PRIu64, field.value);
		}
	}
	buf_put_str(out, buf_str(&observed));
	buf_printf(out, " ");
	buf_put_str(out, buf_str(&attributes));
	buf_printf(out, "\n");
	buf_free(&attributes);
	buf_free(&observed);
}

void otlp_read_protobuf(evrec_str body, struct buf *out)
{
	while (body.len != 0) {
		evrec_str group = bytes_field(&body, 1), resource = bytes_field(&group, 1);
		evrec_str scope_logs = bytes_field(&group, 2), scope = bytes_field(&scope_logs, 1);

		assert_int_equal(group.len, 0);
		assert_str(bytes_field(&scope, 1), "evrec");
		assert_str(bytes_field(&scope, 2), EVREC_VERSION);
		assert_int_equal(scope.len, 0);
		buf_printf(out, "resource ");
		while (resource.len != 0) {
			read_attribute(bytes_field(&resource, 1), out);
		}
		buf_printf(out, "\n");
		assert_true(scope_logs.len != 0);
		while (scope_logs.len != 0) {
			read_log(bytes_field(&scope_logs, 2), out);
		}
	}
	assert_false(out->failed);
}

/* ---- JSON ---- */

/* The member, and counts it: at the end all members must have been asked for. */
static const json_t *member(const json_t *object, const char *key, size_t *seen)
{
	const json_t *value = json_object_get(object, key);

	*seen += value != NULL;
	return value;
}

static const json_t *only(const json_t *object, const char *key)
{
	size_t seen = 0;
	const json_t *value = member(object, key, &seen);

	assert_int_equal(json_object_size(object), 1);
	assert_int_equal(seen, 1);
	return value;
}

static void put_json_text(struct buf *out, const json_t *text)
{
	assert_true(json_is_string(text));
	put_text(out, (evrec_str){ json_string_value(text), json_string_length(text) });
}

static void read_json_attributes(const json_t *attributes, struct buf *out)
{
	assert_true(json_is_array(attributes));
	for (size_t i = 0; i < json_array_size(attributes); i++) {
		const json_t *attribute = json_array_get(attributes, i), *value = json_object_get(attribute, "value");

		assert_int_equal(json_object_size(attribute), 2);
		put_json_text(out, json_object_get(attribute, "key"));
		buf_printf(out, "=");
		if (json_object_get(value, "intValue") != NULL) {
			buf_printf(out, "#");
			put_json_text(out, only(value, "intValue"));
		} else {
			put_json_text(out, only(value, "stringValue"));
		}
		buf_printf(out, ";");
	}
}

static void read_json_log(const json_t *log, struct buf *out)
{
	size_t seen = 0;
	const json_t *time = member(log, "timeUnixNano", &seen), *text = member(log, "severityText", &seen);
	const json_t *observed = member(log, "observedTimeUnixNano", &seen), *body = member(log, "body", &seen);
	const json_t *severity = member(log, "severityNumber", &seen), *attributes = member(log, "attributes", &seen);

	assert_int_equal(json_object_size(log), seen);
	buf_printf(out, "log");
	if (time != NULL) {
		buf_printf(out, " time=");
		put_json_text(out, time);
	}
	if (observed != NULL) {
		buf_printf(out, " observed=");
		put_json_text(out, observed);
	}
	if (severity != NULL) {
		assert_true(json_is_integer(severity));
		buf_printf(out, " severity=%" JSON_INTEGER_FORMAT, json_integer_value(severity));
	}
	if (text != NULL) {
		buf_printf(out, " text=");
		put_json_text(out, text);
	}
	if (body != NULL) {
		buf_printf(out, " body=");
		put_json_text(out, only(body, "stringValue"));
	}
	buf_printf(out, " ");
	read_json_attributes(attributes, out);
	buf_printf(out, "\n");
}

void otlp_read_json(evrec_str body, struct buf *out)
{
	json_t *json = json_loadb(body.data, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *groups = json_object_get(json, "resourceLogs");

	assert_true(json_is_object(json));
	assert_true(json_object_size(json) == (groups == NULL ? 0 : 1));
	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i), *scopes = json_object_get(group, "scopeLogs");
		const json_t *scope_logs = json_array_get(scopes, 0), *scope = json_object_get(scope_logs, "scope");
		const json_t *logs = json_object_get(scope_logs, "logRecords");

		assert_int_equal(json_object_size(group), 2);
		assert_int_equal(json_array_size(scopes), 1);
		assert_int_equal(json_object_size(scope_logs), 2);
		assert_int_equal(json_object_size(scope), 2);
		assert_string_equal(json_string_value(json_object_get(scope, "name")), "evrec");
		assert_string_equal(json_string_value(json_object_get(scope, "version")), EVREC_VERSION);
		buf_printf(out, "resource ");
		read_json_attributes(only(json_object_get(group, "resource"), "attributes"), out);
		buf_printf(out, "\n");
		assert_true(json_array_size(logs) != 0);
		for (size_t j = 0; j < json_array_size(logs); j++) {
			read_json_log(json_array_get(logs, j), out);
		}
	}
	assert_false(out->failed);
	json_decref(json);
}
