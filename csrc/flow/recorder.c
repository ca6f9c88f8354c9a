#include "event/event.h"
#include "flow/broadcaster.h"

struct evrec_recorder {
	evrec_broadcaster *b;
	evrec_fields event; /* the one being recorded; what no recording call sets stays as it is */
	struct keys keys;   /* its own */
	struct buf note;    /* its own, where it had to be cleaned or cut */
	char *strings;      /* component and host */
};

evrec_recorder *evrec_recorder_new(evrec_broadcaster *b, evrec_str component, evrec_str host, evrec_error *err)
{
	evrec_recorder *r;

	if (check_text(component, "component", FIELD_MAX, false, err) != 0 ||
	    check_text(host, "host", FIELD_MAX, false, err) != 0) {
		return NULL;
	}
	r = mem_zalloc(sizeof(*r));
	if (r != NULL) {
		r->strings = mem_alloc(component.len + host.len + 1);
	}
	if (r == NULL || r->strings == NULL) {
		mem_free(r);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	if (component.len != 0) {
		memcpy(r->strings, component.data, component.len);
	}
	if (host.len != 0) {
		memcpy(r->strings + component.len, host.data, host.len);
	}
	evrec_fields_init(&r->event);
	r->event.component = r->event.controller = (evrec_str){ r->strings, component.len };
	r->event.host = r->event.instance = (evrec_str){ r->strings + component.len, host.len };
	r->event.count = 1;
	r->b = b;
	b->refs++;
	return r;
}

void evrec_recorder_free(evrec_recorder *r)
{
	if (r != NULL) {
		broadcaster_unref(r->b);
		keys_free(&r->keys);
		buf_free(&r->note);
		mem_free(r->strings);
		mem_free(r);
	}
}

/* What the keys of an event know of it. */
static int check_known(const evrec_emit *what, evrec_error *err)
{
	int code = 0;

	if (what->object == NULL) {
		code = check_reference(what->regarding, "regarding", err);
	}
	if (code == 0) {
		code = check_type(what->type, err);
	}
	return code != 0 ? code : check_text(what->reason, "reason", REASON_MAX, true, err);
}

/* And the rest, which may change from one occurrence to the next. */
static int check_rest(const evrec_emit *what, evrec_error *err)
{
	int code = 0;

	if (what->object == NULL && !is_plain(what->regarding->resource_version)) {
		code = check_text(what->regarding->resource_version, "regarding.resourceVersion", FIELD_MAX, false,
		                  err);
	}
	if (code == 0 && what->related != NULL) {
		code = check_reference(what->related, "related", err);
	}
	if (code == 0 && what->action.len != 0) {
		code = check_text(what->action, "action", REASON_MAX, false, err);
	}
	if (code == 0 && what->annotations.len != 0) {
		code = check_map(what->annotations, "annotations", err);
	}
	if (code == 0 && what->labels.len != 0) {
		code = check_map(what->labels, "labels", err);
	}
	return code;
}

/* Field by field: compilers copy and clear larger structs by an instruction that takes long to get going. */
static inline void copy_reference(evrec_reference *to, const evrec_reference *from)
{
	_Static_assert(sizeof(*to) == 7 * sizeof(evrec_str), "a field is not copied");

	to->kind = from->kind;
	to->api_version = from->api_version;
	to->name = from->name;
	to->ns = from->ns;
	to->uid = from->uid;
	to->resource_version = from->resource_version;
	to->field_path = from->field_path;
}

/* client-go's makeEvent, without a name, which only an event that turns out to be new needs; its note not yet clean. */
static void make(evrec_fields *event, const evrec_emit *what, int64_t now)
{
	event->name = (evrec_str){ NULL, 0 };
	copy_reference(&event->regarding, what->object != NULL ? evrec_ref_fields(what->object) : what->regarding);
	event->ns = event->regarding.ns.len != 0 ? event->regarding.ns : EVREC_STR("default");
	if (what->related != NULL) {
		event->related = *what->related;
	} else if (event->related.kind.len != 0) {
		event->related = (evrec_reference){ 0 };
	}
	event->annotations = what->annotations;
	event->labels = what->labels;
	event->type = what->type;
	event->reason = what->reason;
	event->action = what->action;
	event->note = what->note;
	event->first = event->last = what->timestamp != EVREC_UNSET ? what->timestamp : now;
}

int evrec_recorder_emit(evrec_recorder *r, const evrec_emit *what, evrec_error *err)
{
	evrec_broadcaster *b = r->b;
	/* From inside a callback, where the recorder's own may still be looked at, others. */
	evrec_fields *event = &r->event, inner;
	struct buf *note = &r->note;
	bool known, ok;
	int64_t now;
	int code;

	if (what->object == NULL && what->regarding == NULL) {
		broadcaster_refuse(b);
		return error_set(err, EVREC_EINVALID, "regarding: missing");
	}
	if (b->busy) {
		inner = r->event;
		event = &inner;
		note = &b->inner_note;
	}
	now = evrec_clock_now(b->options.clock);
	make(event, what, now);
	/* The event before this one was no other: it was found good, and its note clean. */
	known = !b->busy && keys_are_of_same_source(&r->keys, event);
	code = check_rest(what, err);
	if (code == 0 && !known) {
		code = check_known(what, err);
	}
	if (code != 0) {
		event->related = (evrec_reference){ 0 }; /* what is wrong with it may be that it has no kind */
		broadcaster_refuse(b);
		return code;
	}
	if (known) {
		return broadcaster_record(b, event, &r->keys, now, err);
	}
	buf_clear(note);
	event->note = text_clean(what->note, b->options.max_message_bytes, note);
	if (b->busy) {
		return broadcaster_defer(b, event, !note->failed, err);
	}
	/* What had to be cleaned or cut may turn out to be the event before only now. */
	known = event->note.data != what->note.data && keys_are_of_same_source(&r->keys, event);
	ok = !note->failed && (known || keys_make(&r->keys, event));
	return broadcaster_record(b, event, ok ? &r->keys : NULL, now, err);
}

int evrec_recorder_refuse(evrec_recorder *r, const char *message, evrec_error *err)
{
	broadcaster_refuse(r->b);
	return error_set(err, EVREC_EINVALID, "%s", message);
}

int evrec_recorder_drop(evrec_recorder *r, const char *message, evrec_error *err)
{
	broadcaster_drop(r->b);
	return error_set(err, EVREC_EDROPPED, "%s", message);
}
