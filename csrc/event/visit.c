#include "event/schema.h"

#include "base/lru.h"
#include "base/utf8.h"

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

/* One of many keys: those that are equal have the same hash. */
struct hashed {
	uint64_t hash;
	size_t at; /* in the map */
};

static uint64_t hash_of(evrec_str key)
{
	struct buf clean = { 0 };
	uint64_t hash;

	if (utf8_valid(key)) {
		return lru_hash(key);
	}
	utf8_clean(&clean, key);
	hash = lru_hash(buf_str(&clean));
	buf_free(&clean);
	return hash;
}

static int compare(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	if (x->hash != y->hash) {
		return x->hash < y->hash ? -1 : 1;
	}
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Sets hides[i] if pair i does not count. False: no memory. */
static bool find_hidden(const evrec_map *map, bool *hides)
{
	struct hashed *keys = mem_alloc(map->len * sizeof(*keys));

	if (keys == NULL) {
		return false;
	}
	for (size_t i = 0; i < map->len; i++) {
		keys[i] = (struct hashed){ hash_of(map->pairs[i].key), i };
	}
	qsort(keys, map->len, sizeof(*keys), compare);
	for (size_t i = 0; i < map->len; i++) {
		for (size_t j = i + 1; j < map->len && keys[j].hash == keys[i].hash && !hides[keys[i].at]; j++) {
			hides[keys[i].at] = are_equal(map->pairs[keys[i].at].key, map->pairs[keys[j].at].key);
		}
	}
	mem_free(keys);
	return true;
}

static void visit_map(struct visit *v, const char *key, const evrec_map *map)
{
	bool *hides = map->len > FEW ? mem_zalloc(map->len * sizeof(*hides)) : NULL;

	begin(v, key);
	v->ok = v->ok && (map->len <= FEW || (hides != NULL && find_hidden(map, hides)));
	for (size_t i = 0; v->ok && i < map->len; i++) {
		if (hides == NULL ? counts(map, i) : !hides[i]) {
			v->ok = v->visitor->string(v->ctx, map->pairs[i].key, map->pairs[i].value);
		}
	}
	end(v);
	mem_free(hides);
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
