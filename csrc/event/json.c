#include "event/event.h"

#include "base/fork_lock.h"
#include "base/utf8.h"
#include "event/schema.h"

#include <jansson.h>
#include <pthread.h>

/* object, metadata, ownerReferences, one owner */
#define DEPTH 4

struct builder {
	json_t *root;
	json_t *open[DEPTH]; /* the containers that are open, the root first; only the root is owned */
	int depth;
};

/* Puts `value`, whose ownership it takes, into the innermost open container. */
static bool put(struct builder *b, evrec_str key, json_t *value)
{
	json_t *parent = b->depth == 0 ? NULL : b->open[b->depth - 1];

	if (value == NULL) {
		return false;
	}
	if (parent == NULL) {
		b->root = value;
		return true;
	}
	if (json_is_array(parent)) {
		return json_array_append_new(parent, value) == 0;
	}
	return json_object_setn_new(parent, key.data, key.len, value) == 0;
}

static bool open_container(struct builder *b, const char *key, json_t *value)
{
	if (b->depth == DEPTH) {
		json_decref(value);
		return false;
	}
	if (!put(b, str_from(key), value)) {
		return false;
	}
	b->open[b->depth++] = value;
	return true;
}

static bool begin_object(void *ctx, const char *key)
{
	return open_container(ctx, key, json_object());
}

static bool begin_array(void *ctx, const char *key)
{
	return open_container(ctx, key, json_array());
}

static bool end_container(void *ctx)
{
	struct builder *b = ctx;

	b->depth--;
	return true;
}

/* A recorder's events are valid UTF-8, but those that a script made from a table may not be. */
static bool put_string(void *ctx, evrec_str key, evrec_str value)
{
	struct buf clean_key = { 0 }, clean_value = { 0 };
	bool ok;

	if (!utf8_valid(key)) {
		utf8_clean(&clean_key, key);
		key = buf_str(&clean_key);
	}
	if (!utf8_valid(value)) {
		utf8_clean(&clean_value, value);
		value = buf_str(&clean_value);
	}
	ok = !clean_key.failed && !clean_value.failed &&
	     put(ctx, key, json_stringn(value.len == 0 ? "" : value.data, value.len));
	buf_free(&clean_key);
	buf_free(&clean_value);
	return ok;
}

static bool put_integer(void *ctx, const char *key, int64_t value)
{
	return put(ctx, str_from(key), json_integer(value));
}

static bool put_boolean(void *ctx, const char *key, bool value)
{
	return put(ctx, str_from(key), json_boolean(value));
}

static bool put_null(void *ctx, const char *key)
{
	return put(ctx, str_from(key), json_null());
}

static const evrec_visitor visitor = {
	begin_object, begin_array, end_container, put_string, put_integer, put_boolean, put_null,
};

static int append(const char *data, size_t len, void *ctx)
{
	struct buf *out = ctx;

	buf_put(out, data, len);
	return out->failed ? -1 : 0;
}

/* Appends the JSON of `root`, whose ownership it takes. NULL: building it has failed. */
static void dump(struct buf *out, json_t *root)
{
	if (root == NULL || json_dump_callback(root, append, out, JSON_COMPACT) != 0) {
		out->failed = true;
	}
	json_decref(root);
}

static void seed(void)
{
	fork_lock_init();
	fork_lock_enter();
	json_object_seed(0);
	fork_lock_leave();
}

void json_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, seed);
}

void json_event(struct buf *out, const evrec_fields *fields, enum evrec_api api)
{
	struct builder b = { 0 };

	json_init();
	if (!evrec_fields_visit(fields, api, NULL, &visitor, &b)) {
		json_decref(b.root);
		b.root = NULL;
	}
	dump(out, b.root);
}

static const char *core_name(enum schema_row row)
{
	return evrec_event_schema[row].name[EVREC_CORE_V1];
}

static bool put_count(struct builder *b, const evrec_fields *fields)
{
	char last[EVREC_RFC3339_SIZE];
	bool ok = put_integer(b, core_name(SCHEMA_COUNT), fields->count);

	if (fields->last == EVREC_UNSET) {
		ok = ok && put_null(b, core_name(SCHEMA_LAST));
	} else {
		size_t len = evrec_rfc3339_format(fields->last, false, last);

		ok = ok && put_string(b, str_from(core_name(SCHEMA_LAST)), (evrec_str){ last, len });
	}
	if (fields->note.len != 0) {
		ok = ok && put_string(b, str_from(core_name(SCHEMA_NOTE)), fields->note);
	}
	return ok;
}

/* The same in both APIs. */
static bool put_series(struct builder *b, const evrec_fields *fields)
{
	return evrec_fields_visit(fields, EVREC_CORE_V1, core_name(SCHEMA_SERIES), &visitor, b);
}

void json_patch(struct buf *out, const evrec_fields *fields)
{
	struct builder b = { .depth = 1 };
	const bool counts_by_series = fields->count == 0 && fields->series_count != 0;

	json_init();
	b.root = json_object();
	b.open[0] = b.root;
	if (b.root == NULL || !(counts_by_series ? put_series(&b, fields) : put_count(&b, fields))) {
		json_decref(b.root);
		b.root = NULL;
	}
	dump(out, b.root);
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

char *evrec_event_json(const evrec_event *event, enum evrec_api api, size_t *len)
{
	struct buf out = { 0 };

	json_event(&out, evrec_event_fields(event), api);
	return give(&out, len);
}

char *evrec_fields_patch(const evrec_fields *event, size_t *len)
{
	struct buf out = { 0 };

	json_patch(&out, event);
	return give(&out, len);
}
