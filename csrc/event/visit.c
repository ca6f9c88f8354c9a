#include "event/event.h"

/*
 * One place names the fields of both APIs (semantics 1). Every step below does nothing once the visitor has said stop,
 * so that the lists read without conditions.
 */
struct visit {
	const evrec_visitor *visitor;
	void *ctx;
	const char *only;
	bool ok;
};

static bool wanted(const struct visit *v, const char *key)
{
	return v->ok && (v->only == NULL || strcmp(v->only, key) == 0);
}

static void begin(struct visit *v, const char *key)
{
	v->ok = v->ok && v->visitor->begin_object(v->ctx, key);
}

static void end(struct visit *v)
{
	v->ok = v->ok && v->visitor->end(v->ctx);
}

static void text(struct visit *v, const char *key, evrec_str value)
{
	if (v->ok && value.len != 0) {
		v->ok = v->visitor->string(v->ctx, str_from(key), value);
	}
}

static void integer(struct visit *v, const char *key, int64_t value)
{
	if (v->ok && value != 0) {
		v->ok = v->visitor->integer(v->ctx, key, value);
	}
}

static void tristate(struct visit *v, const char *key, int value)
{
	if (v->ok && value >= 0) {
		v->ok = v->visitor->boolean(v->ctx, key, value != 0);
	}
}

static void timestamp(struct visit *v, const char *key, int64_t value, bool micro)
{
	char out[EVREC_RFC3339_SIZE];

	if (v->ok && value != EVREC_UNSET) {
		size_t len = evrec_rfc3339_format(value, micro, out);

		v->ok = v->visitor->string(v->ctx, str_from(key), (evrec_str){ out, len });
	}
}

static void map(struct visit *v, const char *key, evrec_map m)
{
	size_t i;

	if (m.len == 0) {
		return;
	}
	begin(v, key);
	for (i = 0; v->ok && i < m.len; i++) {
		v->ok = v->visitor->string(v->ctx, m.pairs[i].key, m.pairs[i].value);
	}
	end(v);
}

static void owners(struct visit *v, const evrec_fields *f)
{
	size_t i;

	if (f->owners_len == 0) {
		return;
	}
	v->ok = v->ok && v->visitor->begin_array(v->ctx, "ownerReferences");
	for (i = 0; i < f->owners_len; i++) {
		const evrec_owner *owner = &f->owners[i];

		begin(v, NULL);
		text(v, "apiVersion", owner->api_version);
		text(v, "kind", owner->kind);
		text(v, "name", owner->name);
		text(v, "uid", owner->uid);
		tristate(v, "controller", owner->controller);
		tristate(v, "blockOwnerDeletion", owner->block_owner_deletion);
		end(v);
	}
	end(v);
}

static void metadata(struct visit *v, const evrec_fields *f)
{
	if (!wanted(v, "metadata")) {
		return;
	}
	begin(v, "metadata");
	text(v, "name", f->name);
	text(v, "namespace", f->ns);
	text(v, "resourceVersion", f->resource_version);
	map(v, "labels", f->labels);
	map(v, "annotations", f->annotations);
	owners(v, f);
	end(v);
}

static void reference(struct visit *v, const char *key, const evrec_reference *r)
{
	if (!wanted(v, key) || (r->kind.len == 0 && r->name.len == 0)) {
		return;
	}
	begin(v, key);
	text(v, "kind", r->kind);
	text(v, "namespace", r->ns);
	text(v, "name", r->name);
	text(v, "uid", r->uid);
	text(v, "apiVersion", r->api_version);
	text(v, "resourceVersion", r->resource_version);
	text(v, "fieldPath", r->field_path);
	end(v);
}

static void source(struct visit *v, const char *key, const evrec_fields *f)
{
	if (!wanted(v, key) || (f->component.len == 0 && f->host.len == 0)) {
		return;
	}
	begin(v, key);
	text(v, "component", f->component);
	text(v, "host", f->host);
	end(v);
}

static void series(struct visit *v, const evrec_fields *f)
{
	if (!wanted(v, "series") || f->series_count == 0) {
		return;
	}
	begin(v, "series");
	integer(v, "count", f->series_count);
	timestamp(v, "lastObservedTime", f->series_last, true);
	end(v);
}

/* The API prints it as null where it is unset. */
static void event_time(struct visit *v, const evrec_fields *f)
{
	if (!wanted(v, "eventTime")) {
		return;
	}
	if (f->event_time == EVREC_UNSET) {
		v->ok = v->visitor->null(v->ctx, "eventTime");
	} else {
		timestamp(v, "eventTime", f->event_time, true);
	}
}

static void top_text(struct visit *v, const char *key, evrec_str value)
{
	if (wanted(v, key)) {
		text(v, key, value);
	}
}

static void top_time(struct visit *v, const char *key, int64_t value)
{
	if (wanted(v, key)) {
		timestamp(v, key, value, false);
	}
}

static void top_integer(struct visit *v, const char *key, int64_t value)
{
	if (wanted(v, key)) {
		integer(v, key, value);
	}
}

static void visit_core_v1(struct visit *v, const evrec_fields *f)
{
	metadata(v, f);
	reference(v, "involvedObject", &f->regarding);
	top_text(v, "reason", f->reason);
	top_text(v, "message", f->note);
	source(v, "source", f);
	top_time(v, "firstTimestamp", f->first);
	top_time(v, "lastTimestamp", f->last);
	top_integer(v, "count", f->count);
	top_text(v, "type", f->type);
	event_time(v, f);
	series(v, f);
	top_text(v, "action", f->action);
	reference(v, "related", &f->related);
	top_text(v, "reportingComponent", f->controller);
	top_text(v, "reportingInstance", f->instance);
}

static void visit_events_v1(struct visit *v, const evrec_fields *f)
{
	metadata(v, f);
	event_time(v, f);
	series(v, f);
	top_text(v, "reportingController", f->controller);
	top_text(v, "reportingInstance", f->instance);
	top_text(v, "action", f->action);
	top_text(v, "reason", f->reason);
	reference(v, "regarding", &f->regarding);
	reference(v, "related", &f->related);
	top_text(v, "note", f->note);
	top_text(v, "type", f->type);
	source(v, "deprecatedSource", f);
	top_time(v, "deprecatedFirstTimestamp", f->first);
	top_time(v, "deprecatedLastTimestamp", f->last);
	top_integer(v, "deprecatedCount", f->count);
}

bool evrec_fields_visit(const evrec_fields *fields, enum evrec_api api, const char *only, const evrec_visitor *visitor,
                        void *ctx)
{
	struct visit v = { visitor, ctx, only, true };

	if (only == NULL) {
		begin(&v, NULL);
	}
	top_text(&v, "kind", EVREC_STR("Event"));
	top_text(&v, "apiVersion", api == EVREC_CORE_V1 ? EVREC_STR("v1") : EVREC_STR("events.k8s.io/v1"));
	if (api == EVREC_CORE_V1) {
		visit_core_v1(&v, fields);
	} else {
		visit_events_v1(&v, fields);
	}
	if (only == NULL) {
		end(&v);
	}
	return v.ok;
}
