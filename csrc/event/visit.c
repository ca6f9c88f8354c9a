#include "event/schema.h"

#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>

/* `ok` is false after a function of the visitor returned false: then nothing more is visited. */
struct visit {
	const evrec_visitor *visitor;
	void *ctx;
	enum evrec_api api;
	bool ok;
};

static void visit_fields(struct visit *v, const evrec_field *table, const char *base);

static bool is_set(const evrec_field *field, const char *base);

/* An object without essential fields is always set. */
static bool object_is_set(const evrec_field *table, const char *base)
{
	bool essential = false;
	const evrec_field *field;

	for (field = table; field->name[0] != NULL; field++) {
		if (field->essential && is_set(field, base)) {
			return true;
		}
		essential = essential || field->essential;
	}
	return !essential;
}

static bool is_set(const evrec_field *field, const char *base)
{
	const void *at = base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_STRING:
		return ((const evrec_str *)at)->len != 0;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		return *(const int64_t *)at != EVREC_UNSET;
	case EVREC_FIELD_INTEGER:
		return *(const int32_t *)at != 0;
	case EVREC_FIELD_TRISTATE:
		return *(const int *)at >= 0;
	case EVREC_FIELD_MAP:
		return ((const evrec_map *)at)->len != 0;
	case EVREC_FIELD_OBJECT:
		return object_is_set(field->fields, at);
	case EVREC_FIELD_OWNERS:
		return ((const evrec_fields *)(const void *)base)->owners_len != 0;
	case EVREC_FIELD_CONSTANT:
		break;
	}
	return true;
}

static void begin(struct visit *v, const char *key)
{
	v->ok = v->ok && v->visitor->begin_object(v->ctx, key);
}

static void end(struct visit *v)
{
	v->ok = v->ok && v->visitor->end(v->ctx);
}

static void visit_object(struct visit *v, const char *key, const evrec_field *table, const void *base)
{
	begin(v, key);
	visit_fields(v, table, base);
	end(v);
}

/* ---- maps: of keys that are equal once their bytes that are no UTF-8 are replaced, the last one counts ---- */

#define FEW 16 /* keys that are compared each with each */

static COLD bool are_equal_if_cleaned(evrec_str a, evrec_str b)
{
	struct buf one = { 0 }, two = { 0 };
	bool equal;

	utf8_clean(&one, a);
	utf8_clean(&two, b);
	equal = !one.failed && !two.failed && str_eq(buf_str(&one), buf_str(&two));
	buf_free(&one);
	buf_free(&two);
	return equal;
}

static bool are_equal(evrec_str a, evrec_str b)
{
	return str_eq(a, b) || ((!utf8_valid(a) || !utf8_valid(b)) && are_equal_if_cleaned(a, b));
}

static bool counts(const evrec_map *map, size_t i)
{
	bool last = true;

	for (size_t j = i + 1; j < map->len && last; j++) {
		last = !are_equal(map->pairs[i].key, map->pairs[j].key);
	}
	return last;
}

/* One of many keys. */
struct cleaned {
	evrec_str text; /* as UTF-8 */
	size_t at;      /* in the map */
};

/* Compares keys, not hashes: an attacker may know keys with equal hashes. */
static int compare(const void *a, const void *b)
{
	const struct cleaned *x = a, *y = b;
	int order = 0;

	if (x->text.len != y->text.len) {
		return x->text.len < y->text.len ? -1 : 1;
	}
	if (x->text.len != 0) {
		order = memcmp(x->text.data, y->text.data, x->text.len);
	}
	return order != 0 ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* Fills `keys` with those of the pairs from `from` on. Texts that differ from their keys lie in *texts. */
static void clean_keys(const evrec_map *map, size_t from, struct cleaned *keys, struct buf *texts)
{
	const size_t len = map->len - from;
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		const evrec_str key = map->pairs[from + i].key;
		const size_t before = texts->len;

		keys[i] = (struct cleaned){ key, from + i };
		if (!utf8_valid(key)) {
			utf8_clean(texts, key);
			keys[i].text = (evrec_str){ NULL, texts->len - before };
		}
	}
	/* From here on the texts do not move. */
	for (size_t i = 0; i < len; i++) {
		if (keys[i].text.data == NULL && keys[i].text.len != 0) {
			keys[i].text.data = texts->data + at;
			at += keys[i].text.len;
		}
	}
}

/* Pairs that are looked through at once. */
#define AT_ONCE ((size_t)32768)

/* Sets a bit for each pair from `from` on that a later pair with an equal key hides. False: no memory. */
static bool find_hidden(const evrec_map *map, size_t from, unsigned char hidden[AT_ONCE / CHAR_BIT])
{
	const size_t len = map->len - from;
	struct cleaned *keys = mem_alloc(len * sizeof(*keys));
	struct buf texts = { 0 };
	bool ok = keys != NULL;

	if (ok) {
		clean_keys(map, from, keys, &texts);
		ok = !texts.failed;
	}
	if (ok) {
		qsort(keys, len, sizeof(*keys), compare);
		memset(hidden, 0, AT_ONCE / CHAR_BIT);
	}
	for (size_t i = 0; ok && i + 1 < len; i++) {
		const size_t bit = keys[i].at - from;

		if (bit < AT_ONCE && str_eq(keys[i].text, keys[i + 1].text)) {
			hidden[bit / CHAR_BIT] |= (unsigned char)(1u << bit % CHAR_BIT);
		}
	}
	buf_free(&texts);
	mem_free(keys);
	return ok;
}

/*
 * A function of the visitor may leave by longjmp, as Lua's errors do. So no memory of the heap is held while it runs,
 * and the stack has room for the bits of some pairs only. The other maps need no such stack: hence noinline.
 */
static COLD __attribute__((noinline)) void visit_many(struct visit *v, const evrec_map *map)
{
	unsigned char hidden[AT_ONCE / CHAR_BIT];

	for (size_t i = 0; v->ok && i < map->len; i++) {
		const size_t at = i % AT_ONCE;

		if (at == 0 && !find_hidden(map, i, hidden)) {
			v->ok = false;
		} else if ((hidden[at / CHAR_BIT] >> at % CHAR_BIT & 1) == 0) {
			v->ok = v->visitor->string(v->ctx, map->pairs[i].key, map->pairs[i].value);
		}
	}
}

static void visit_few(struct visit *v, const evrec_map *map)
{
	for (size_t i = 0; v->ok && i < map->len; i++) {
		if (counts(map, i)) {
			v->ok = v->visitor->string(v->ctx, map->pairs[i].key, map->pairs[i].value);
		}
	}
}

static void visit_map(struct visit *v, const char *key, const evrec_map *map)
{
	begin(v, key);
	if (map->len <= FEW) {
		visit_few(v, map);
	} else {
		visit_many(v, map);
	}
	end(v);
}

static void visit_owners(struct visit *v, const char *key, const evrec_field *table, const evrec_fields *fields)
{
	size_t i;

	v->ok = v->ok && v->visitor->begin_array(v->ctx, key);
	for (i = 0; i < fields->owners_len; i++) {
		visit_object(v, NULL, table, &fields->owners[i]);
	}
	end(v);
}

static bool visit_time(const struct visit *v, const char *key, int64_t value, bool micro)
{
	char out[EVREC_RFC3339_SIZE];
	const size_t len = evrec_rfc3339_format(value, micro, out);

	return v->visitor->string(v->ctx, str_from(key), (evrec_str){ out, len });
}

static void visit_value(struct visit *v, const evrec_field *field, const char *base)
{
	const char *key = field->name[v->api];
	const void *at = base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_CONSTANT:
		v->ok = v->visitor->string(v->ctx, str_from(key), str_from(field->constant[v->api]));
		break;
	case EVREC_FIELD_STRING:
		v->ok = v->visitor->string(v->ctx, str_from(key), *(const evrec_str *)at);
		break;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		v->ok = visit_time(v, key, *(const int64_t *)at, field->type == EVREC_FIELD_MICROTIME);
		break;
	case EVREC_FIELD_INTEGER:
		v->ok = v->visitor->integer(v->ctx, key, *(const int32_t *)at);
		break;
	case EVREC_FIELD_TRISTATE:
		v->ok = v->visitor->boolean(v->ctx, key, *(const int *)at != 0);
		break;
	case EVREC_FIELD_MAP:
		visit_map(v, key, at);
		break;
	case EVREC_FIELD_OBJECT:
		visit_object(v, key, field->fields, at);
		break;
	case EVREC_FIELD_OWNERS:
		visit_owners(v, key, field->fields, (const evrec_fields *)(const void *)base);
		break;
	}
}

static void visit_field(struct visit *v, const evrec_field *field, const char *base)
{
	if (!v->ok) {
		return;
	}
	if (is_set(field, base)) {
		visit_value(v, field, base);
	} else if (field->nullable) {
		v->ok = v->visitor->null(v->ctx, field->name[v->api]);
	}
}

static void visit_fields(struct visit *v, const evrec_field *table, const char *base)
{
	const evrec_field *field;

	for (field = table; field->name[0] != NULL; field++) {
		visit_field(v, field, base);
	}
}

bool evrec_fields_visit(const evrec_fields *fields, enum evrec_api api, const char *only, const evrec_visitor *visitor,
                        void *ctx)
{
	struct visit v = { visitor, ctx, api, true };
	size_t i;

	if (only == NULL) {
		begin(&v, NULL);
	}
	for (i = 0; i < SCHEMA_ROWS; i++) {
		const evrec_field *field = schema_field(api, i);

		if (only == NULL || strcmp(only, field->name[api]) == 0) {
			visit_field(&v, field, (const char *)fields);
		}
	}
	if (only == NULL) {
		end(&v);
	}
	return v.ok;
}
