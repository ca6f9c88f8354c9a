#include "read/filter.h"

#include "event/event.h"

#include <strings.h>

/* ---- making ---- */

/* The strings of a query, one by one; NULL after the last. */
static evrec_str *string_of(evrec_query *q, size_t i)
{
	evrec_str *const strings[] = {
		&q->ns,
		&q->regarding.kind,
		&q->regarding.api_version,
		&q->regarding.ns,
		&q->regarding.name,
		&q->regarding.uid,
		&q->mentions.kind,
		&q->mentions.api_version,
		&q->mentions.ns,
		&q->mentions.name,
		&q->mentions.uid,
		&q->controller,
		&q->instance,
		&q->reason,
		&q->action,
		&q->field_selector,
	};
	const size_t n = sizeof(strings) / sizeof(strings[0]);

	return i < n ? strings[i] : i - n < q->types_len ? (evrec_str *)(uintptr_t)&q->types[i - n] : NULL;
}

/* Copies all strings of the query, whose types are in filter->types, to one block. */
static bool own_strings(struct filter *filter)
{
	evrec_query *q = &filter->query;
	size_t len = 1;
	evrec_str *s;
	char *p;

	for (size_t i = 0; (s = string_of(q, i)) != NULL; i++) {
		len += s->len;
	}
	filter->strings = p = mem_alloc(len);
	for (size_t i = 0; p != NULL && (s = string_of(q, i)) != NULL; i++) {
		if (s->len != 0) {
			memcpy(p, s->data, s->len);
		}
		s->data = p;
		p += s->len;
	}
	return p != NULL;
}

static bool copy_query(struct filter *filter, const evrec_query *query)
{
	filter->query = *query;
	filter->types = mem_zalloc((query->types_len + 1) * sizeof(*filter->types));
	if (filter->types == NULL) {
		return false;
	}
	if (query->types_len != 0) {
		memcpy(filter->types, query->types, query->types_len * sizeof(*filter->types));
	}
	filter->query.types = filter->types;
	return own_strings(filter);
}

static int check(const evrec_query *query, evrec_error *err)
{
	for (size_t i = 0; i < query->types_len; i++) {
		if (query->types[i].len == 0) {
			return error_set(err, EVREC_EINVALID, "types: has an empty type");
		}
	}
	if (query->order != EVREC_NEWEST && query->order != EVREC_OLDEST) {
		return error_set(err, EVREC_EINVALID, "order: must be EVREC_NEWEST or EVREC_OLDEST");
	}
	return 0;
}

struct filter *filter_new(const evrec_query *query, evrec_error *err)
{
	struct filter *filter;

	if (check(query, err) != 0) {
		return NULL;
	}
	filter = mem_zalloc(sizeof(*filter));
	if (filter == NULL || !copy_query(filter, query)) {
		error_set(err, EVREC_ENOMEM, "no memory");
		filter_free(filter);
		return NULL;
	}
	if (selector_parse(&filter->selector, filter->query.field_selector, err) != 0) {
		filter_free(filter);
		return NULL;
	}
	return filter;
}

void filter_free(struct filter *filter)
{
	if (filter != NULL) {
		selector_free(&filter->selector);
		mem_free(filter->types);
		mem_free(filter->strings);
		mem_free(filter);
	}
}

/* ---- matching ---- */

static bool is(evrec_str wanted, evrec_str value)
{
	return wanted.len == 0 || str_eq(wanted, value);
}

static bool is_without_case(evrec_str wanted, evrec_str value)
{
	return wanted.len == 0 || (wanted.len == value.len && strncasecmp(wanted.data, value.data, value.len) == 0);
}

static bool is_object(const evrec_object_filter *wanted, const evrec_reference *object)
{
	return is(wanted->name, object->name) && is_without_case(wanted->kind, object->kind) &&
	       is(wanted->ns, object->ns) && is(wanted->uid, object->uid) &&
	       is(wanted->api_version, object->api_version);
}

static bool is_any_of(const evrec_query *q, evrec_str type)
{
	for (size_t i = 0; i < q->types_len; i++) {
		if (str_eq(q->types[i], type)) {
			return true;
		}
	}
	return q->types_len == 0;
}

/* An event without a time is before all others. */
static bool is_in_time(const evrec_query *q, int64_t last)
{
	return last >= q->since && (q->before == INT64_MAX || last < q->before);
}

bool filter_matches(const struct filter *filter, const evrec_fields *event)
{
	const evrec_query *q = &filter->query;

	return is(q->ns, event->ns) && is_object(&q->regarding, &event->regarding) &&
	       (is_object(&q->mentions, &event->regarding) || is_object(&q->mentions, &event->related)) &&
	       is(q->controller, event_controller(event)) && is(q->instance, event_instance(event)) &&
	       is_any_of(q, event->type) && is(q->reason, event->reason) && is(q->action, event->action) &&
	       is_in_time(q, event_last(event)) && selector_matches(&filter->selector, event);
}

/* ---- the selector that a server gets ---- */

static void put(struct buf *out, const char *field, evrec_str value)
{
	if (value.len != 0) {
		selector_put_term(out, field, true, value);
	}
}

void filter_put_selector(const struct filter *filter, struct buf *out)
{
	const evrec_query *q = &filter->query;

	/* The kind is left out, as a server compares it with case. The namespace is in the path. */
	put(out, "involvedObject.name", q->regarding.name);
	put(out, "involvedObject.namespace", q->regarding.ns);
	put(out, "involvedObject.uid", q->regarding.uid);
	put(out, "involvedObject.apiVersion", q->regarding.api_version);
	put(out, "reason", q->reason);
	if (q->types_len == 1) {
		put(out, "type", q->types[0]);
	}
	selector_put(&filter->selector, out);
}
