/* The JSON of opentelemetry-proto 1.x (its README says how protobuf's JSON differs). */
#include "base/json_text.h"
#include "otlp/encoder.h"

#define PUT(out, literal) otlp_append(out, literal, sizeof(literal) - 1)

/* The literals of an attribute, and a number: all but its strings. */
#define AROUND_ATTRIBUTE 80

static void put_attribute(struct buf *out, const struct otlp_attribute *attribute)
{
	if (!buf_reserve(out, AROUND_ATTRIBUTE)) {
		return;
	}
	PUT(out, "{\"key\":");
	if (!json_put_utf8(out, attribute->name, AROUND_ATTRIBUTE)) {
		return;
	}
	if (attribute->text.data == NULL) {
		PUT(out, ",\"value\":{\"intValue\":\"");
		json_put_number(out, (uint64_t)attribute->number);
		PUT(out, "\"}}");
		return;
	}
	PUT(out, ",\"value\":{\"stringValue\":");
	if (json_put_string(out, attribute->text, AROUND_ATTRIBUTE)) {
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
	if (time != 0 && buf_reserve(out, member.len + JSON_NUMBER_MAX + 1)) {
		otlp_append(out, member.data, member.len);
		json_put_number(out, time);
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
		json_put_number(out, (uint64_t)log->severity);
	}
	if (log->severity_text.len != 0) {
		buf_put_str(out, EVREC_STR(",\"severityText\":"));
		(void)json_put_string(out, log->severity_text, 0);
	}
	if (log->body.len != 0) {
		buf_put_str(out, EVREC_STR(",\"body\":{\"stringValue\":"));
		(void)json_put_string(out, log->body, 0);
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
