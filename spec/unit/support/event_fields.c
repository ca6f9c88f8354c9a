#include "event_fields.h"

static void reference_strings(evrec_reference *r, evrec_str **strings)
{
	evrec_str *const all[] = { &r->kind, &r->api_version,      &r->name,      &r->ns,
		                   &r->uid,  &r->resource_version, &r->field_path };

	memcpy(strings, all, sizeof(all));
}

void event_fields_strings(evrec_fields *f, evrec_str *strings[EVENT_STRINGS])
{
	evrec_str *const own[] = { &f->name,       &f->ns,       &f->resource_version,
		                   &f->type,       &f->reason,   &f->action,
		                   &f->note,       &f->host,     &f->component,
		                   &f->controller, &f->instance, &f->series_state };

	memcpy(strings, own, sizeof(own));
	reference_strings(&f->regarding, strings + 12);
	reference_strings(&f->related, strings + 19);
}

evrec_fields event_fields_full(void)
{
	static const evrec_pair labels[] = { { { "app", 3 }, { "web", 3 } }, { { "tier", 4 }, { "", 0 } } };
	static const evrec_pair annotations[] = { { { "checked-by", 10 }, { "a person", 8 } } };
	static const evrec_owner owners[] = {
		{ { "ReplicaSet", 10 }, { "apps/v1", 7 }, { "web-7", 5 }, { "owner-1", 7 }, 1, 0 },
		{ { "Batch", 5 }, { "", 0 }, { "night", 5 }, { "owner-2", 7 }, -1, -1 },
	};
	static char texts[EVENT_STRINGS][16];
	evrec_str *strings[EVENT_STRINGS];
	evrec_fields f;

	evrec_fields_init(&f);
	event_fields_strings(&f, strings);
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "text.%zu", i);
		*strings[i] = str_from(texts[i]);
	}
	f.labels = (evrec_map){ labels, 2 };
	f.annotations = (evrec_map){ annotations, 1 };
	f.owners = owners;
	f.owners_len = 2;
	f.first = T0;
	f.last = T0 + 1;
	f.event_time = T0 + 2;
	f.series_last = T0 + 3;
	f.count = 4;
	f.series_count = 5;
	return f;
}

static void check_same_maps(const evrec_map *a, const evrec_map *b)
{
	assert_int_equal(a->len, b->len);
	for (size_t i = 0; i < a->len; i++) {
		assert_true(str_eq(a->pairs[i].key, b->pairs[i].key));
		assert_true(str_eq(a->pairs[i].value, b->pairs[i].value));
	}
}

static void check_same_owners(const evrec_owner *a, const evrec_owner *b)
{
	assert_true(str_eq(a->kind, b->kind) && str_eq(a->api_version, b->api_version));
	assert_true(str_eq(a->name, b->name) && str_eq(a->uid, b->uid));
	assert_int_equal(a->controller, b->controller);
	assert_int_equal(a->block_owner_deletion, b->block_owner_deletion);
}

void event_fields_check_same(const evrec_fields *a, const evrec_fields *b)
{
	evrec_fields x = *a, y = *b;
	evrec_str *of_a[EVENT_STRINGS], *of_b[EVENT_STRINGS];

	event_fields_strings(&x, of_a);
	event_fields_strings(&y, of_b);
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		if (!str_eq(*of_a[i], *of_b[i])) {
			fail_msg("string %zu: \"%.*s\" is not \"%.*s\"", i, (int)of_a[i]->len, of_a[i]->data,
			         (int)of_b[i]->len, of_b[i]->data);
		}
	}
	check_same_maps(&a->labels, &b->labels);
	check_same_maps(&a->annotations, &b->annotations);
	assert_int_equal(a->owners_len, b->owners_len);
	for (size_t i = 0; i < a->owners_len; i++) {
		check_same_owners(&a->owners[i], &b->owners[i]);
	}
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->last, b->last);
	assert_int_equal(a->event_time, b->event_time);
	assert_int_equal(a->series_last, b->series_last);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->series_count, b->series_count);
}

struct extent {
	uintptr_t start;
	size_t size;
};

static void check_bytes(const struct extent *extent, const void *bytes, size_t len)
{
	const uintptr_t at = (uintptr_t)bytes - extent->start;

	assert_true(len == 0 || (at <= extent->size && len <= extent->size - at));
}

static void check_string(const struct extent *extent, evrec_str s)
{
	check_bytes(extent, s.data, s.len);
}

static void check_map(const struct extent *extent, const evrec_map *map)
{
	check_bytes(extent, map->pairs, map->len * sizeof(*map->pairs));
	for (size_t i = 0; i < map->len; i++) {
		check_string(extent, map->pairs[i].key);
		check_string(extent, map->pairs[i].value);
	}
}

void event_fields_check_within(const evrec_fields *fields, const void *memory, size_t size)
{
	const struct extent extent = { (uintptr_t)memory, size };
	evrec_fields copy = *fields;
	evrec_str *strings[EVENT_STRINGS];

	event_fields_strings(&copy, strings);
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		check_string(&extent, *strings[i]);
	}
	check_map(&extent, &fields->labels);
	check_map(&extent, &fields->annotations);
	check_bytes(&extent, fields->owners, fields->owners_len * sizeof(*fields->owners));
	for (size_t i = 0; i < fields->owners_len; i++) {
		const evrec_owner *owner = &fields->owners[i];

		check_string(&extent, owner->kind);
		check_string(&extent, owner->api_version);
		check_string(&extent, owner->name);
		check_string(&extent, owner->uid);
	}
}
