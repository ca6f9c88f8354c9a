#include "event/trace_line.h"

#include "base/json_text.h"
#include "event/event.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* ---- writing ---- */

#define DIGITS 9

static void put_time(struct buf *out, const char *name, int64_t ns)
{
	const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	buf_printf(out, ",\"%s\":%s%" PRIu64 ".%09" PRIu64, name, ns < 0 ? "-" : "", size / EVREC_SECOND,
	           size % EVREC_SECOND);
}

/* Appends a member of an object. */
static void put_string(struct buf *out, const char *before, const char *name, evrec_str value)
{
	buf_printf(out, "%s\"%s\":", before, name);
	(void)json_put_string(out, value, 0);
}

/* The host's locale may have something else for the decimal point: a comma, or several bytes. */
static void put_number(struct buf *out, const char *name, double number)
{
	char text[64];
	bool in_point = false;

	(void)snprintf(text, sizeof(text), "%.17g", number);
	buf_printf(out, "\"%s\":", name);
	for (const char *c = text; *c != '\0'; c++) {
		const bool is_point = strchr("0123456789-+e", *c) == NULL;

		if (!in_point || !is_point) {
			buf_put(out, is_point ? "." : c, 1);
		}
		in_point = is_point;
	}
}

void trace_put_header(struct buf *out, const struct trace_header *header)
{
	const evrec_correlator_options *o = &header->correlator;

	buf_printf(out, TRACE_START "%d,\"evrec\":\"" EVREC_VERSION "\",\"clock\":\"%s\",\"correlator\":{",
	           TRACE_VERSION, header->fake_clock ? "fake" : "real");
	buf_printf(out, "\"lru_cache_size\":%zu,\"burst_size\":%u,", o->lru_cache_size, o->burst_size);
	put_number(out, "qps", o->qps);
	buf_printf(out, ",\"max_events\":%u,", o->max_events);
	put_number(out, "max_interval_in_seconds", (double)o->max_interval / (double)EVREC_SECOND);
	buf_printf(out, "},\"key_func\":%s,\"spam_key_func\":%s}\n", o->key_func != NULL ? "true" : "false",
	           o->spam_key_func != NULL ? "true" : "false");
}

static void put_keys(struct buf *out, const struct trace_keys *keys)
{
	const char *before = ",\"keys\":{";

	if (keys->aggregate.data != NULL) {
		put_string(out, before, "aggregate", keys->aggregate);
		put_string(out, ",", "local", keys->local);
		before = ",";
	}
	if (keys->spam.data != NULL) {
		put_string(out, before, "spam", keys->spam);
	}
	if (keys->aggregate.data != NULL || keys->spam.data != NULL) {
		buf_put(out, "}", 1);
	}
}

void trace_put_event(struct buf *out, unsigned id, int64_t t, int64_t at, const evrec_fields *event,
                     const struct trace_keys *keys)
{
	buf_printf(out, "{\"id\":%u", id);
	put_time(out, "t", t);
	if (at != t) {
		put_time(out, "at", at);
	}
	if (event != NULL) {
		buf_printf(out, ",\"event\":");
		json_event(out, event, EVREC_CORE_V1);
		put_keys(out, keys);
	}
	buf_put(out, "}\n", 2);
}

void trace_put_gap(struct buf *out, uint64_t lost, int64_t from, int64_t to)
{
	buf_printf(out, "{\"lost\":%" PRIu64, lost);
	put_time(out, "from", from);
	put_time(out, "to", to);
	buf_put(out, "}\n", 2);
}

void trace_put_end(struct buf *out, const char *why, int64_t t)
{
	buf_printf(out, "{\"end\":\"%s\"", why);
	put_time(out, "t", t);
	buf_put(out, "}\n", 2);
}

/* ---- identity ---- */

static void put_part(struct buf *out, char tag, evrec_str part)
{
	buf_put(out, &tag, 1);
	buf_put(out, &part.len, sizeof(part.len));
	buf_put_str(out, part);
}

static bool visit_object(void *ctx, const char *key)
{
	put_part(ctx, '{', str_from(key));
	return true;
}

static bool visit_array(void *ctx, const char *key)
{
	put_part(ctx, '[', str_from(key));
	return true;
}

static bool visit_end(void *ctx)
{
	buf_put(ctx, "}", 1);
	return true;
}

static bool visit_string(void *ctx, evrec_str key, evrec_str value)
{
	put_part(ctx, 'k', key);
	put_part(ctx, 's', value);
	return true;
}

static bool visit_integer(void *ctx, const char *key, int64_t value)
{
	put_part(ctx, 'i', str_from(key));
	buf_put(ctx, &value, sizeof(value));
	return true;
}

static bool visit_boolean(void *ctx, const char *key, bool value)
{
	put_part(ctx, value ? 't' : 'f', str_from(key));
	return true;
}

static bool visit_null(void *ctx, const char *key)
{
	(void)ctx;
	(void)key;
	return true;
}

void trace_put_identity(struct buf *out, const evrec_fields *event, const struct trace_keys *keys)
{
	static const evrec_visitor visitor = { visit_object,  visit_array,   visit_end, visit_string,
		                               visit_integer, visit_boolean, visit_null };

	out->failed = !evrec_fields_visit(event, EVREC_CORE_V1, NULL, &visitor, out) || out->failed;
	if (keys->aggregate.data != NULL) {
		put_part(out, 'a', keys->aggregate);
		put_part(out, 'l', keys->local);
	}
	if (keys->spam.data != NULL) {
		put_part(out, 'p', keys->spam);
	}
}

/* ---- reading ---- */

/* Reads digits at *at, and moves it behind them. False: there is none, or the number has more than 18. */
static bool read_digits(const char **at, const char *end, uint64_t *n)
{
	const char *start = *at;

	for (*n = 0; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		*n = *n * 10 + (uint64_t)(**at - '0');
	}
	return *at != start && *at - start <= 18;
}

static bool skip(const char **at, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0) {
		return false;
	}
	*at += len;
	return true;
}
#define SKIP(at, end, literal) skip(at, end, literal, sizeof(literal) - 1)

static bool read_time(const char **at, const char *end, int64_t *ns)
{
	const bool negative = SKIP(at, end, "-");
	uint64_t seconds, fraction = 0, unit = EVREC_SECOND;

	if (!read_digits(at, end, &seconds) || seconds > (uint64_t)(INT64_MAX / EVREC_SECOND) - 1) {
		return false;
	}
	if (SKIP(at, end, ".")) {
		const char *start = *at;

		if (!read_digits(at, end, &fraction) || *at - start > DIGITS) {
			return false;
		}
		for (unit = 1; *at - start < DIGITS; start--) {
			unit *= 10;
		}
		fraction *= unit;
	}
	*ns = (int64_t)(seconds * (uint64_t)EVREC_SECOND + fraction);
	*ns = negative ? -*ns : *ns;
	return true;
}

/* Reads the start of a line of an event, as trace_put_event writes it. False: the line has another form. */
static bool read_occurrence(const char **at, const char *end, struct trace_line *line)
{
	uint64_t id;

	if (!SKIP(at, end, "{\"id\":") || !read_digits(at, end, &id) || id < 1 || id > TRACE_IDS ||
	    !SKIP(at, end, ",\"t\":") || !read_time(at, end, &line->t)) {
		return false;
	}
	line->id = (unsigned)id;
	line->at = line->t;
	return !SKIP(at, end, ",\"at\":") || read_time(at, end, &line->at);
}

static size_t keep(struct trace_line *line, const json_t *value)
{
	buf_put(&line->keys, json_string_value(value), json_string_length(value));
	return json_string_length(value);
}

static void read_keys(const json_t *keys, struct trace_line *line)
{
	const json_t *aggregate = json_object_get(keys, "aggregate"), *spam = json_object_get(keys, "spam");

	buf_clear(&line->keys);
	line->has_aggregate = json_is_string(aggregate);
	line->has_spam = json_is_string(spam);
	line->aggregate_len = keep(line, aggregate);
	line->local_len = keep(line, json_object_get(keys, "local"));
	line->spam_len = keep(line, spam);
	(void)buf_cstr(&line->keys);
}

/* Reads a definition without keys whose event can be scanned. */
static bool scan_definition(struct trace_line *line)
{
	const char *at = line->definition.data, *end = at + line->definition.len;
	evrec_event *event = SKIP(&at, end, ",\"event\":") ? event_scan(&at, end) : NULL;

	if (event == NULL || end - at != 1 || *at != '}') {
		evrec_event_release(event);
		return false;
	}
	read_keys(NULL, line);
	line->event = event;
	return true;
}

static enum trace_read parse_definition(const json_t *root, struct trace_line *line)
{
	const json_t *event = json_object_get(root, "event");

	if (!json_is_object(event)) {
		return TRACE_MALFORMED;
	}
	read_keys(json_object_get(root, "keys"), line);
	line->event = line->keys.failed ? NULL : event_from_object(event);
	return line->event != NULL ? TRACE_OK : TRACE_NO_MEMORY;
}

enum trace_read trace_read_definition(struct trace_line *line)
{
	enum trace_read result;
	json_t *root;

	if (scan_definition(line)) {
		return TRACE_OK;
	}
	json_init();
	root = json_loadb(line->text.data, line->text.len, JSON_ALLOW_NUL, NULL);
	result = parse_definition(root, line);
	json_decref(root);
	return result;
}

static enum trace_read read_rare(const json_t *root, struct trace_line *line)
{
	const json_t *lost = json_object_get(root, "lost"), *end = json_object_get(root, "end");
	const char *clock = json_string_value(json_object_get(root, "clock"));

	if (json_object_get(root, "evrec_trace") != NULL) {
		line->kind = TRACE_HEADER;
		line->version = (unsigned)json_integer_value(json_object_get(root, "evrec_trace"));
		line->real_clock = clock != NULL && strcmp(clock, "real") == 0;
		return TRACE_OK;
	}
	if (json_is_integer(lost) && json_integer_value(lost) > 0) {
		line->kind = TRACE_GAP;
		line->lost = (uint64_t)json_integer_value(lost);
		return TRACE_OK;
	}
	line->kind = TRACE_END;
	return json_is_string(end) && strcmp(json_string_value(end), "max_bytes") == 0 ? TRACE_OK : TRACE_MALFORMED;
}

enum trace_read trace_read_line(evrec_str text, struct trace_line *line)
{
	const char *at = text.data, *end = text.data + text.len;
	enum trace_read result;
	json_t *root;

	if (read_occurrence(&at, end, line)) {
		line->kind = end - at == 1 && *at == '}' ? TRACE_AGAIN : TRACE_EVENT;
		line->text = text;
		line->definition = (evrec_str){ at, (size_t)(end - at) };
		return TRACE_OK;
	}
	json_init();
	root = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
	result = json_is_object(root) ? read_rare(root, line) : TRACE_MALFORMED;
	json_decref(root);
	return result;
}

struct trace_keys trace_line_keys(const struct trace_line *line)
{
	const char *at = line->keys.data;
	struct trace_keys keys = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };

	if (line->has_aggregate) {
		keys.aggregate = (evrec_str){ at, line->aggregate_len };
		keys.local = (evrec_str){ at + line->aggregate_len, line->local_len };
	}
	if (line->has_spam) {
		keys.spam = (evrec_str){ at + line->aggregate_len + line->local_len, line->spam_len };
	}
	return keys;
}
