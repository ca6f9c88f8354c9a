/* The JSON of events and patches, without jansson, whose tree takes 4 times as long for a patch. */
#include "base/json_text.h"
#include "event/event.h"
#include "event/schema.h"

/* The outermost object, metadata, ownerReferences, one owner. */
#define DEPTH 4

struct writer {
	struct buf *out;
	char closers[DEPTH]; /* of the containers that are open */
	size_t depth;
	bool is_first; /* the next member is the first of its container */
};

/* The most bytes around a member, with the longest value that is no string. */
#define AROUND_MEMBER (4 + JSON_NUMBER_MAX)

static void put(struct buf *out, evrec_str text)
{
	if (buf_reserve(out, text.len)) {
		bytes_copy(out->data + out->len, text.data, text.len);
		out->len += text.len;
	}
}

/* The comma before a value. */
static void begin_value(struct writer *w)
{
	if (!w->is_first) {
		put(w->out, EVREC_STR(","));
	}
	w->is_first = false;
}

static void begin_member(struct writer *w, evrec_str key)
{
	begin_value(w);
	(void)json_put_string(w->out, key, AROUND_MEMBER);
	put(w->out, EVREC_STR(":"));
}

/* `key` is NULL for an element of an array. */
static bool open_container(struct writer *w, const char *key, char opener, char closer)
{
	if (key != NULL) {
		begin_member(w, str_from(key));
	} else {
		begin_value(w);
	}
	buf_put(w->out, &opener, 1);
	w->is_first = true;
	w->closers[w->depth++] = closer;
	return !w->out->failed;
}

static bool begin_object(void *ctx, const char *key)
{
	return open_container(ctx, key, '{', '}');
}

static bool begin_array(void *ctx, const char *key)
{
	return open_container(ctx, key, '[', ']');
}

static bool end_container(void *ctx)
{
	struct writer *w = ctx;

	buf_put(w->out, &w->closers[--w->depth], 1);
	w->is_first = false;
	return !w->out->failed;
}

/* A recorder's events are valid UTF-8, but those that a script made from a table may not be. */
static bool put_string(void *ctx, evrec_str key, evrec_str value)
{
	struct writer *w = ctx;

	begin_member(w, key);
	return json_put_string(w->out, value, AROUND_MEMBER);
}

static bool put_integer(void *ctx, const char *key, int64_t value)
{
	struct writer *w = ctx;

	begin_member(w, str_from(key));
	if (value < 0) {
		put(w->out, EVREC_STR("-"));
	}
	if (buf_reserve(w->out, JSON_NUMBER_MAX)) {
		json_put_number(w->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
	}
	return !w->out->failed;
}

static bool put_word(struct writer *w, const char *key, evrec_str word)
{
	begin_member(w, str_from(key));
	put(w->out, word);
	return !w->out->failed;
}

static bool put_boolean(void *ctx, const char *key, bool value)
{
	return put_word(ctx, key, value ? EVREC_STR("true") : EVREC_STR("false"));
}

static bool put_null(void *ctx, const char *key)
{
	return put_word(ctx, key, EVREC_STR("null"));
}

static const evrec_visitor visitor = {
	begin_object, begin_array, end_container, put_string, put_integer, put_boolean, put_null,
};

void json_event(struct buf *out, const evrec_fields *fields, enum evrec_api api)
{
	struct writer w = { .out = out, .is_first = true };

	out->failed = !evrec_fields_visit(fields, api, NULL, &visitor, &w) || out->failed;
}

static const char *core_name(enum schema_row row)
{
	return evrec_event_schema[row].name[EVREC_CORE_V1];
}

static void put_count(struct writer *w, const evrec_fields *fields)
{
	char last[EVREC_RFC3339_SIZE];

	(void)put_integer(w, core_name(SCHEMA_COUNT), fields->count);
	if (fields->last == EVREC_UNSET) {
		(void)put_null(w, core_name(SCHEMA_LAST));
	} else {
		const size_t len = evrec_rfc3339_format(fields->last, false, last);

		(void)put_string(w, str_from(core_name(SCHEMA_LAST)), (evrec_str){ last, len });
	}
	if (fields->note.len != 0) {
		(void)put_string(w, str_from(core_name(SCHEMA_NOTE)), fields->note);
	}
}

/* The same in both APIs. */
static void put_series(struct writer *w, const evrec_fields *fields)
{
	(void)evrec_fields_visit(fields, EVREC_CORE_V1, core_name(SCHEMA_SERIES), &visitor, w);
}

void json_patch(struct buf *out, const evrec_fields *fields)
{
	struct writer w = { .out = out, .is_first = true };

	(void)begin_object(&w, NULL);
	if (fields->count == 0 && fields->series_count != 0) {
		put_series(&w, fields);
	} else {
		put_count(&w, fields);
	}
	(void)end_container(&w);
}

/* Makes the buffer's text a string that the caller owns. NULL: no memory. */
static char *give(struct buf *out, size_t *len)
{
	(void)buf_cstr(out);
	if (out->failed) {
		buf_free(out);
		return NULL;
	}
	if (len != NULL) {
		*len = out->len;
	}
	return out->data;
}

char *evrec_fields_json(const evrec_fields *fields, enum evrec_api api, size_t *len)
{
	struct buf out = { 0 };

	json_event(&out, fields, api);
	return give(&out, len);
}

char *evrec_fields_patch(const evrec_fields *event, size_t *len)
{
	struct buf out = { 0 };

	json_patch(&out, event);
	return give(&out, len);
}

/* For a small buffer: json_patch reserves room for the longest form of each value, but the exact size may fit. */
static COLD size_t write_exactly(const evrec_fields *event, char *to, size_t size)
{
	struct buf out = { 0 };
	size_t len = 0;

	json_patch(&out, event);
	if (!out.failed && out.len <= size) {
		memcpy(to, out.data, out.len);
		len = out.len;
	}
	buf_free(&out);
	return len;
}

size_t evrec_fields_write_patch(const evrec_fields *event, char *to, size_t size)
{
	struct buf out = { .data = to, .cap = size, .is_fixed = true };

	json_patch(&out, event);
	return out.failed ? write_exactly(event, to, size) : out.len;
}
