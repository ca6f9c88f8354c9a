#include "otlp/answer.h"

#include "base/utf8.h"
#include "event/event.h"

#include <jansson.h>
#include <strings.h>

/* ---- protobuf ---- */

/* What is left of a message. */
struct message {
	const char *at, *end;
};

struct field {
	uint64_t number, value; /* `value` of a varint */
	evrec_str bytes;        /* of a field with a length; else its data is NULL */
};

static bool read_varint(struct message *m, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
		const unsigned char byte = (unsigned char)*m->at++;

		*value |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80) {
			return true;
		}
	}
	return false;
}

static bool take(struct message *m, uint64_t len, evrec_str *bytes)
{
	if (len > (uint64_t)(m->end - m->at)) {
		return false;
	}
	*bytes = (evrec_str){ m->at, (size_t)len };
	m->at += len;
	return true;
}

/* False: the message has ended, or is broken: it has then not ended. */
static bool read_field(struct message *m, struct field *field)
{
	const struct message before = *m;
	uint64_t tag, len;
	evrec_str fixed;
	bool ok = read_varint(m, &tag) && tag >> 3 != 0;

	*field = (struct field){ .number = tag >> 3 };
	switch (ok ? tag & 7 : 7) {
	case 0:
		ok = read_varint(m, &field->value);
		break;
	case 1:
		ok = take(m, 8, &fixed);
		break;
	case 2:
		ok = read_varint(m, &len) && take(m, len, &field->bytes);
		break;
	case 5:
		ok = take(m, 4, &fixed);
		break;
	default: /* groups, which no message here has */
		ok = false;
		break;
	}
	if (!ok) {
		*m = before;
	}
	return ok;
}

/* The values of two fields of a message: a varint, and bytes; the last one of each counts. */
static bool read_two(evrec_str body, uint64_t number_at, uint64_t bytes_at, struct field *number, struct field *bytes)
{
	struct message m = { body.data, body.len == 0 ? body.data : body.data + body.len };
	struct field field;

	*number = *bytes = (struct field){ 0 };
	while (m.at < m.end && read_field(&m, &field)) {
		if (field.number == number_at && field.bytes.data == NULL) {
			*number = field;
		} else if (field.number == bytes_at && field.bytes.data != NULL) {
			*bytes = field;
		}
	}
	return m.at == m.end;
}

static bool read_protobuf(struct otlp_answer *answer, bool success, evrec_str body)
{
	struct field number, bytes;

	if (!success) { /* google.rpc.Status: code, message */
		if (!read_two(body, 1, 2, &number, &bytes)) {
			return false;
		}
		otlp_answer_text(answer, bytes.bytes);
		return true;
	}
	/* ExportLogsServiceResponse: partial_success, of rejected_log_records and error_message */
	if (!read_two(body, 0, 1, &number, &bytes) || !read_two(bytes.bytes, 1, 2, &number, &bytes)) {
		return false;
	}
	answer->rejected = (int64_t)number.value;
	otlp_answer_text(answer, bytes.bytes);
	return true;
}

/* ---- JSON ---- */

/* A 64-bit integer, which protobuf's JSON has as a string, and takes as a number. */
static int64_t integer(const json_t *value)
{
	const char *text = json_string_value(value);
	int64_t number = 0;

	if (text == NULL) {
		return json_integer_value(value);
	}
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *text - '0', &number)) {
			return INT64_MAX;
		}
	}
	return *text == '\0' ? number : 0;
}

static bool read_json(struct otlp_answer *answer, bool success, evrec_str body)
{
	const json_t *from;
	json_t *json;
	bool ok;

	json_init();
	json = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
	ok = json_is_object(json);
	from = success ? json_object_get(json, "partialSuccess") : json;
	if (ok && success) {
		answer->rejected = integer(json_object_get(from, "rejectedLogRecords"));
	}
	from = json_object_get(from, success ? "errorMessage" : "message");
	/* A text of JSON without a message may still tell people something. */
	ok = ok && (success || json_is_string(from));
	if (ok) {
		otlp_answer_text(answer, (evrec_str){ json_string_value(from), json_string_length(from) });
	}
	json_decref(json);
	return ok;
}

/* ---- either ---- */

static bool is_type(evrec_str content_type, const char *type)
{
	const size_t len = strlen(type);

	return content_type.len >= len && strncasecmp(content_type.data, type, len) == 0 &&
	       (content_type.len == len || strchr("; \t", content_type.data[len]) != NULL);
}

typedef bool read_func(struct otlp_answer *answer, bool success, evrec_str body);

/* Sets the functions that read a body of this type, the likelier one first; NULL: none. */
static void choose(evrec_str content_type, enum otlp_encoding asked, read_func *readers[2])
{
	readers[0] = readers[1] = NULL;
	if (content_type.len == 0) {
		readers[0] = asked == OTLP_JSON ? read_json : read_protobuf;
		readers[1] = asked == OTLP_JSON ? read_protobuf : read_json;
	} else if (is_type(content_type, "application/json")) {
		readers[0] = read_json;
	} else if (is_type(content_type, "application/x-protobuf") || is_type(content_type, "application/protobuf")) {
		readers[0] = read_protobuf;
	}
}

void otlp_answer_text(struct otlp_answer *answer, evrec_str text)
{
	const char *end;

	while (text.len != 0 && (*text.data == ' ' || (*text.data >= '\t' && *text.data <= '\r'))) {
		text.data++;
		text.len--;
	}
	end = text.len == 0 ? NULL : memchr(text.data, '\n', text.len);
	if (end != NULL) {
		text.len = (size_t)(end - text.data);
	}
	utf8_line(answer->message, sizeof(answer->message), text);
}

void otlp_answer_read(struct otlp_answer *answer, enum otlp_encoding asked, evrec_str content_type, evrec_str body)
{
	const bool success = answer->status >= 200 && answer->status <= 299;
	read_func *readers[2];

	answer->rejected = 0;
	answer->web_page = success && is_type(content_type, "text/html");
	answer->message[0] = '\0';
	if (body.len == 0) {
		return;
	}
	choose(content_type, asked, readers);
	for (size_t i = 0; i < 2; i++) {
		if (readers[i] != NULL && readers[i](answer, success, body)) {
			answer->rejected = answer->rejected > 0 ? answer->rejected : 0;
			return;
		}
	}
	if (!success) {
		otlp_answer_text(answer, body);
	}
}
