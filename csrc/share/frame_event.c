#include "share/frame.h"

#include "event/event.h"
#include "event/schema.h"
#include "share/bytes.h"

#define KEYS_AGGREGATE 1
#define KEYS_SPAM 2

/* The name and the times are sent apart from the event's bytes. */
static bool is_left_out(const evrec_field *field)
{
	return field == &evrec_event_schema[SCHEMA_FIRST] || field == &evrec_event_schema[SCHEMA_LAST] ||
	       field == &evrec_event_schema[SCHEMA_EVENT_TIME] ||
	       (field == evrec_event_schema[SCHEMA_METADATA].fields && field->offset == offsetof(evrec_fields, name));
}

/* ---- writing ---- */

static void put_map(struct buf *out, const evrec_map *map)
{
	bytes_put_varint(out, map->len);
	for (size_t i = 0; i < map->len; i++) {
		bytes_put_str(out, map->pairs[i].key);
		bytes_put_str(out, map->pairs[i].value);
	}
}

static void put_fields(struct buf *out, const evrec_field *table, const void *base);

static void put_owners(struct buf *out, const evrec_field *table, const evrec_fields *fields)
{
	bytes_put_varint(out, fields->owners_len);
	for (size_t i = 0; i < fields->owners_len; i++) {
		put_fields(out, table, &fields->owners[i]);
	}
}

static void put_field(struct buf *out, const evrec_field *field, const void *base)
{
	const void *at = (const char *)base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_STRING:
		bytes_put_str(out, *(const evrec_str *)at);
		break;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		buf_put(out, at, sizeof(int64_t));
		break;
	case EVREC_FIELD_INTEGER:
		bytes_put_varint(out, (uint32_t) * (const int32_t *)at);
		break;
	case EVREC_FIELD_TRISTATE:
		bytes_put_varint(out, (uint32_t)(*(const int *)at + 1));
		break;
	case EVREC_FIELD_MAP:
		put_map(out, at);
		break;
	case EVREC_FIELD_OBJECT:
		put_fields(out, field->fields, at);
		break;
	case EVREC_FIELD_OWNERS:
		put_owners(out, field->fields, base);
		break;
	case EVREC_FIELD_CONSTANT:
		break;
	}
}

static void put_fields(struct buf *out, const evrec_field *table, const void *base)
{
	for (const evrec_field *field = table; field->name[0] != NULL; field++) {
		if (!is_left_out(field)) {
			put_field(out, field, base);
		}
	}
}

void frame_event_put(struct buf *out, const evrec_fields *event, const struct frame_keys *keys, size_t sinks)
{
	put_fields(out, evrec_event_schema, event);
	bytes_put_varint(out, sinks);
	for (size_t i = 0; i < sinks; i++) {
		const struct frame_keys *k = &keys[i];

		bytes_put_varint(out, (k->has_aggregate ? KEYS_AGGREGATE : 0U) | (k->has_spam ? KEYS_SPAM : 0U));
		if (k->has_aggregate) {
			bytes_put_str(out, k->aggregate);
			bytes_put_str(out, k->local);
		}
		if (k->has_spam) {
			bytes_put_str(out, k->spam);
		}
	}
}

/* ---- reading ---- */

/* The pairs of both maps lie in one block. A pair takes two bytes at least, so that `room` is enough for them. */
struct reading {
	struct bytes in;
	struct frame_event *event;
	size_t pairs, room;
	bool no_memory;
};

static void get_fields(struct reading *r, const evrec_field *table, void *base);

static void get_map(struct reading *r, evrec_map *map)
{
	const uint64_t n = bytes_varint(&r->in);

	if (n > r->in.left / 2) {
		r->in.bad = true;
		return;
	}
	if (n != 0 && r->event->pairs == NULL) {
		r->room = r->in.left / 2;
		r->event->pairs = mem_alloc(r->room * sizeof(*r->event->pairs));
		r->no_memory = r->event->pairs == NULL;
	}
	if (n == 0 || r->no_memory) {
		return;
	}
	*map = (evrec_map){ r->event->pairs + r->pairs, (size_t)n };
	for (size_t i = 0; i < n; i++) {
		r->event->pairs[r->pairs].key = bytes_str(&r->in);
		r->event->pairs[r->pairs].value = bytes_str(&r->in);
		r->pairs++;
	}
}

static void get_owners(struct reading *r, const evrec_field *table, evrec_fields *fields)
{
	const uint64_t n = bytes_varint(&r->in);

	if (n > r->in.left / 6) {
		r->in.bad = true;
		return;
	}
	if (n == 0) {
		return;
	}
	r->event->owners = mem_zalloc((size_t)n * sizeof(*r->event->owners));
	if (r->event->owners == NULL) {
		r->no_memory = true;
		return;
	}
	fields->owners = r->event->owners;
	fields->owners_len = (size_t)n;
	for (size_t i = 0; i < n; i++) {
		get_fields(r, table, &r->event->owners[i]);
	}
}

static void get_small(struct reading *r, int *to, uint64_t max, int less)
{
	const uint64_t value = bytes_varint(&r->in);

	if (value > max) {
		r->in.bad = true;
		return;
	}
	*to = (int)(value - (uint64_t)less);
}

static void get_field(struct reading *r, const evrec_field *field, void *base)
{
	void *at = (char *)base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_STRING:
		*(evrec_str *)at = bytes_str(&r->in);
		break;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		bytes_get(&r->in, at, sizeof(int64_t));
		break;
	case EVREC_FIELD_INTEGER:
		get_small(r, at, INT32_MAX, 0);
		break;
	case EVREC_FIELD_TRISTATE:
		get_small(r, at, 2, 1);
		break;
	case EVREC_FIELD_MAP:
		get_map(r, at);
		break;
	case EVREC_FIELD_OBJECT:
		get_fields(r, field->fields, at);
		break;
	case EVREC_FIELD_OWNERS:
		get_owners(r, field->fields, base);
		break;
	case EVREC_FIELD_CONSTANT:
		break;
	}
}

static void get_fields(struct reading *r, const evrec_field *table, void *base)
{
	for (const evrec_field *field = table; field->name[0] != NULL && !r->in.bad && !r->no_memory; field++) {
		if (!is_left_out(field)) {
			get_field(r, field, base);
		}
	}
}

static void get_keys(struct reading *r)
{
	const uint64_t sinks = bytes_varint(&r->in);

	if (sinks > FRAME_SINKS) {
		r->in.bad = true;
		return;
	}
	r->event->sinks = (size_t)sinks;
	for (size_t i = 0; i < sinks; i++) {
		const uint64_t flags = bytes_varint(&r->in);
		struct frame_keys *k = &r->event->keys[i];

		r->in.bad = r->in.bad || flags > (KEYS_AGGREGATE | KEYS_SPAM);
		if ((flags & KEYS_AGGREGATE) != 0) {
			k->has_aggregate = true;
			k->aggregate = bytes_str(&r->in);
			k->local = bytes_str(&r->in);
		}
		if ((flags & KEYS_SPAM) != 0) {
			k->has_spam = true;
			k->spam = bytes_str(&r->in);
		}
	}
}

static int check(const evrec_fields *e, evrec_error *err)
{
	int code = check_reference(&e->regarding, "regarding", err);

	if (code == 0 && (e->related.kind.len != 0 || e->related.name.len != 0)) {
		code = check_reference(&e->related, "related", err);
	}
	if (code == 0) {
		code = check_type(e->type, err);
	}
	if (code == 0) {
		code = check_text(e->reason, "reason", FIELD_MAX, true, err);
	}
	if (code == 0) {
		code = check_text(e->action, "action", FIELD_MAX, false, err);
	}
	if (code == 0) {
		code = check_map(e->labels, "labels", err);
	}
	if (code == 0) {
		code = check_map(e->annotations, "annotations", err);
	}
	return code != 0 || is_dns_label(e->ns) ? code : error_set(err, EVREC_EINVALID, "namespace: invalid");
}

/* The recorder's own fields. */
static int check_source(const evrec_fields *e, evrec_error *err)
{
	int code = check_text(e->component, "component", FIELD_MAX, false, err);

	if (code == 0) {
		code = check_text(e->host, "host", FIELD_MAX, false, err);
	}
	if (code == 0) {
		code = check_text(e->controller, "controller", FIELD_MAX, false, err);
	}
	if (code == 0) {
		code = check_text(e->instance, "instance", FIELD_MAX, false, err);
	}
	return code != 0 ? code : check_text(e->note, "note", SIZE_MAX, false, err);
}

int frame_event_read(evrec_str bytes, struct frame_event *event, evrec_error *err)
{
	struct reading r = { .in = bytes_of(bytes), .event = event };
	int code;

	*event = (struct frame_event){ .sinks = 0 };
	evrec_fields_init(&event->fields);
	get_fields(&r, evrec_event_schema, &event->fields);
	get_keys(&r);
	if (r.no_memory) {
		code = error_set(err, EVREC_ENOMEM, "no memory");
	} else if (r.in.bad || r.in.left != 0) {
		code = error_set(err, EVREC_EINVALID, "the peer sent no event");
	} else {
		code = check(&event->fields, err);
		code = code != 0 ? code : check_source(&event->fields, err);
	}
	if (code != 0) {
		frame_event_destroy(event);
	}
	return code;
}

void frame_event_destroy(struct frame_event *event)
{
	mem_free(event->pairs);
	mem_free(event->owners);
	*event = (struct frame_event){ .sinks = 0 };
}
