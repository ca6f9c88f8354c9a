/*
 * fuzz_event.h - an event of any bytes, and the comparison of its JSON with it.
 */
#ifndef EVREC_FUZZ_EVENT_H
#define EVREC_FUZZ_EVENT_H

#include "fuzz.h"

#include <jansson.h>

#include "base/utf8.h"

/* ---- reading ---- */

#define PAIRS_MAX 4
#define TEXTS 25

struct event_input {
	evrec_fields fields;
	evrec_pair labels[PAIRS_MAX], annotations[PAIRS_MAX];
	evrec_owner owner;
};

/* The strings of an event. The parts of its keys come first, in the order of the keys. */
static inline evrec_str *event_text(evrec_fields *f, unsigned i)
{
	evrec_str *const texts[TEXTS] = {
		&f->component,
		&f->host,
		&f->regarding.kind,
		&f->regarding.ns,
		&f->regarding.name,
		&f->regarding.uid,
		&f->regarding.api_version,
		&f->type,
		&f->regarding.field_path,
		&f->reason,
		&f->note,
		&f->controller,
		&f->instance,
		&f->regarding.resource_version,
		&f->action,
		&f->name,
		&f->ns,
		&f->resource_version,
		&f->related.kind,
		&f->related.name,
		&f->related.ns,
		&f->related.uid,
		&f->related.api_version,
		&f->related.field_path,
		&f->related.resource_version,
	};

	return texts[i];
}

static inline int64_t read_time(struct input *in)
{
	switch (input_byte(in)) {
	case 0:
		return T0;
	case 1:
		return EVREC_UNSET;
	default:
		return (int64_t)input_u64(in);
	}
}

static inline evrec_map read_map(struct input *in, evrec_pair pairs[PAIRS_MAX])
{
	size_t i, n = input_byte(in) % (PAIRS_MAX + 1);

	for (i = 0; i < n; i++) {
		pairs[i].key = input_text(in);
		pairs[i].value = input_text(in);
		/* The JSON reader of this test refuses a NUL in a key, though the writer does not. */
		if (pairs[i].key.len != 0) {
			pairs[i].key.len = strnlen(pairs[i].key.data, pairs[i].key.len);
		}
	}
	return (evrec_map){ pairs, n };
}

static inline void read_event(struct input *in, struct event_input *e)
{
	evrec_fields *f = &e->fields;
	unsigned i;

	evrec_fields_init(f);
	for (i = 0; i < TEXTS; i++) {
		*event_text(f, i) = input_text(in);
	}
	f->first = read_time(in);
	f->last = read_time(in);
	f->event_time = read_time(in);
	f->series_last = read_time(in);
	f->count = (int8_t)input_byte(in);
	f->series_count = (int8_t)input_byte(in);
	f->labels = read_map(in, e->labels);
	f->annotations = read_map(in, e->annotations);
	if (input_byte(in) % 2 == 1) {
		e->owner = (evrec_owner){ input_text(in), input_text(in), input_text(in), input_text(in), 1, -1 };
		f->owners = &e->owner;
		f->owners_len = 1;
	}
}

/* Changes an event: moves the border between two neighbouring fields, or changes the text of one field. */
static inline void read_change(struct input *in, evrec_fields *f)
{
	unsigned i = input_byte(in) % (TEXTS - 1);
	evrec_str *left = event_text(f, i), *right = event_text(f, i + 1);

	if (input_byte(in) % 2 == 1) {
		*left = input_text(in);
	} else if (right->len > 0) {
		char *text = input_block(in, left->len + 1);

		if (left->len != 0) {
			memcpy(text, left->data, left->len);
		}
		text[left->len] = right->data[0];
		*left = (evrec_str){ text, left->len + 1 };
		right->data++;
		right->len--;
	}
}

/* ---- JSON ---- */

/* An object, and how many of its members were compared, which in the end must be all. */
struct members {
	const json_t *object;
	size_t expected;
};

static inline const json_t *expect(struct members *m, const char *key, bool there)
{
	const json_t *value = json_object_get(m->object, key);

	CHECK((value != NULL) == there);
	m->expected += there;
	return value;
}

static inline struct members expect_object(struct members *m, const char *key, bool there)
{
	struct members inner = { expect(m, key, there), 0 };

	CHECK(!there || json_is_object(inner.object));
	return inner;
}

static inline void expect_no_more(const struct members *m)
{
	CHECK(json_object_size(m->object) == m->expected);
}

static inline bool is_clean_of(const json_t *json, evrec_str value)
{
	struct buf clean = { 0 };
	evrec_str text = { json_string_value(json), json_string_length(json) };
	bool same;

	utf8_clean(&clean, value);
	same = json_is_string(json) && str_eq(text, buf_str(&clean));
	buf_free(&clean);
	return same;
}

static inline void expect_text(struct members *m, const char *key, evrec_str value)
{
	const json_t *json = expect(m, key, value.len != 0);

	CHECK(json == NULL || is_clean_of(json, value));
}

static inline void expect_integer(struct members *m, const char *key, int64_t value)
{
	const json_t *json = expect(m, key, value != 0);

	CHECK(json == NULL || (json_is_integer(json) && json_integer_value(json) == value));
}

static inline void expect_null(struct members *m, const char *key)
{
	const json_t *json = expect(m, key, true);

	CHECK(json_is_null(json));
}

static inline void expect_time(struct members *m, const char *key, int64_t value, bool micro)
{
	const json_t *json = expect(m, key, value != EVREC_UNSET);
	char text[EVREC_RFC3339_SIZE];

	if (json != NULL) {
		(void)evrec_rfc3339_format(value, micro, text);
		CHECK(json_is_string(json) && strcmp(json_string_value(json), text) == 0);
	}
}

/* If two keys are equal after cleaning, the last one counts. */
static inline void expect_map(struct members *m, const char *key, evrec_map map)
{
	const json_t *json = expect(m, key, map.len != 0);
	size_t i, j, found = 0;

	for (i = 0; i < map.len; i++) {
		struct buf name = { 0 }, later = { 0 };
		bool last = true;

		utf8_clean(&name, map.pairs[i].key);
		for (j = i + 1; j < map.len; j++) {
			buf_clear(&later);
			utf8_clean(&later, map.pairs[j].key);
			last = last && !str_eq(buf_str(&name), buf_str(&later));
		}
		if (last) {
			CHECK(is_clean_of(json_object_get(json, buf_cstr(&name)), map.pairs[i].value));
			found++;
		}
		buf_free(&name);
		buf_free(&later);
	}
	CHECK(json == NULL || json_object_size(json) == found);
}

static inline void expect_reference(struct members *m, const char *key, const evrec_reference *r)
{
	bool there = r->kind.len != 0 || r->name.len != 0;
	struct members inner = expect_object(m, key, there);

	if (there) {
		expect_text(&inner, "kind", r->kind);
		expect_text(&inner, "namespace", r->ns);
		expect_text(&inner, "name", r->name);
		expect_text(&inner, "uid", r->uid);
		expect_text(&inner, "apiVersion", r->api_version);
		expect_text(&inner, "resourceVersion", r->resource_version);
		expect_text(&inner, "fieldPath", r->field_path);
		expect_no_more(&inner);
	}
}

static inline void expect_metadata(struct members *m, const evrec_fields *f)
{
	struct members metadata = expect_object(m, "metadata", true);
	const json_t *owners, *owner, *controller;

	expect_text(&metadata, "name", f->name);
	expect_text(&metadata, "namespace", f->ns);
	expect_text(&metadata, "resourceVersion", f->resource_version);
	expect_map(&metadata, "labels", f->labels);
	expect_map(&metadata, "annotations", f->annotations);
	owners = expect(&metadata, "ownerReferences", f->owners_len != 0);
	expect_no_more(&metadata);
	owner = json_array_get(owners, 0);
	if (owner != NULL) {
		struct members inner = { owner, 0 };

		expect_text(&inner, "kind", f->owners->kind);
		expect_text(&inner, "apiVersion", f->owners->api_version);
		expect_text(&inner, "name", f->owners->name);
		expect_text(&inner, "uid", f->owners->uid);
		controller = expect(&inner, "controller", true);
		CHECK(json_is_true(controller));
		expect_no_more(&inner);
	}
}

/* The names of fields for which the two APIs differ. */
struct names {
	const char *api_version, *regarding, *note, *source, *first, *last, *count, *controller;
};

static inline void expect_series(struct members *m, const evrec_fields *f)
{
	struct members series = expect_object(m, "series", f->series_count != 0);

	if (series.object != NULL) {
		expect_integer(&series, "count", f->series_count);
		expect_time(&series, "lastObservedTime", f->series_last, true);
		expect_text(&series, "state", f->series_state);
		expect_no_more(&series);
	}
}

static inline void check_json_of(const evrec_fields *f, const json_t *json, const struct names *names)
{
	struct members m = { json, 0 }, source;

	expect_text(&m, "kind", EVREC_STR("Event"));
	expect_text(&m, "apiVersion", str_from(names->api_version));
	expect_metadata(&m, f);
	expect_reference(&m, names->regarding, &f->regarding);
	expect_reference(&m, "related", &f->related);
	expect_text(&m, "type", f->type);
	expect_text(&m, "reason", f->reason);
	expect_text(&m, "action", f->action);
	expect_text(&m, names->note, f->note);
	source = expect_object(&m, names->source, f->component.len != 0 || f->host.len != 0);
	expect_text(&source, "component", f->component);
	expect_text(&source, "host", f->host);
	expect_no_more(&source);
	expect_text(&m, names->controller, f->controller);
	expect_text(&m, "reportingInstance", f->instance);
	expect_time(&m, names->first, f->first, false);
	expect_time(&m, names->last, f->last, false);
	expect_integer(&m, names->count, f->count);
	if (f->event_time == EVREC_UNSET) {
		expect_null(&m, "eventTime");
	} else {
		expect_time(&m, "eventTime", f->event_time, true);
	}
	expect_series(&m, f);
	expect_no_more(&m);
}

/* Parses the text, which is the one that jansson writes. */
static inline json_t *parse_json(const char *text, size_t len)
{
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	char *again = json_dumps(json, JSON_COMPACT);

	CHECK(text != NULL && text[len] == '\0' && strlen(text) == len && json_is_object(json));
	CHECK(strcmp(again, text) == 0);
	free(again);
	return json;
}

static inline void check_json(const evrec_fields *f)
{
	static const struct names names[] = {
		[EVREC_CORE_V1] = { "v1", "involvedObject", "message", "source", "firstTimestamp", "lastTimestamp",
		                    "count", "reportingComponent" },
		[EVREC_EVENTS_V1] = { "events.k8s.io/v1", "regarding", "note", "deprecatedSource",
		                      "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount",
		                      "reportingController" },
	};
	evrec_event *event = evrec_event_new(f);
	int api;

	for (api = EVREC_CORE_V1; api <= EVREC_EVENTS_V1; api++) {
		size_t len = 0;
		char *text = evrec_fields_json(evrec_event_fields(event), (enum evrec_api)api, &len);
		json_t *json = parse_json(text, len);

		check_json_of(f, json, &names[api]);
		json_decref(json);
		evrec_free(text);
	}
	evrec_event_release(event);
}

static inline void expect_count(struct members *m, const evrec_fields *f)
{
	const json_t *count = expect(m, "count", true);

	CHECK(json_is_integer(count) && json_integer_value(count) == f->count);
	if (f->last == EVREC_UNSET) {
		expect_null(m, "lastTimestamp");
	} else {
		expect_time(m, "lastTimestamp", f->last, false);
	}
	expect_text(m, "message", f->note);
}

static inline void check_patch(const evrec_fields *f)
{
	size_t len = 0;
	char *text = evrec_fields_patch(f, &len);
	json_t *json = parse_json(text, len);
	struct members m = { json, 0 };

	if (f->count == 0 && f->series_count != 0) {
		expect_series(&m, f);
	} else {
		expect_count(&m, f);
	}
	expect_no_more(&m);
	json_decref(json);
	evrec_free(text);
}

#endif
