#include "event/event.h"
#include "flow/broadcaster.h"

struct evrec_recorder {
	evrec_broadcaster *b;
	evrec_str component, host;
	char *strings;
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
	r->component = (evrec_str){ r->strings, component.len };
	r->host = (evrec_str){ r->strings + component.len, host.len };
	r->b = b;
	b->refs++;
	return r;
}

void evrec_recorder_free(evrec_recorder *r)
{
	if (r != NULL) {
		broadcaster_unref(r->b);
		mem_free(r->strings);
		mem_free(r);
	}
}

static int check(const evrec_emit *what, evrec_error *err)
{
	int code = 0;

	if (what->object == NULL) {
		if (what->regarding == NULL) {
			return error_set(err, EVREC_EINVALID, "regarding: missing");
		}
		code = check_reference(what->regarding, "regarding", err);
	}
	if (code == 0 && what->related != NULL) {
		code = check_reference(what->related, "related", err);
	}
	if (code == 0) {
		code = check_type(what->type, err);
	}
	if (code == 0) {
		code = check_text(what->reason, "reason", REASON_MAX, true, err);
	}
	if (code == 0) {
		code = check_text(what->action, "action", REASON_MAX, false, err);
	}
	if (code == 0) {
		code = check_map(what->annotations, "annotations", err);
	}
	if (code == 0) {
		code = check_map(what->labels, "labels", err);
	}
	return code;
}

/* client-go's makeEvent, all but the name, which only an event that turns out to be new needs. */
static void make(const evrec_recorder *r, const evrec_emit *what, int64_t now, evrec_fields *event)
{
	evrec_fields_init(event);
	event->regarding = what->object != NULL ? *evrec_ref_fields(what->object) : *what->regarding;
	event->ns = event->regarding.ns.len != 0 ? event->regarding.ns : EVREC_STR("default");
	if (what->related != NULL) {
		event->related = *what->related;
	}
	event->annotations = what->annotations;
	event->labels = what->labels;
	event->type = what->type;
	event->reason = what->reason;
	event->action = what->action;
	event->note = text_clean(what->note, r->b->options.max_message_bytes, broadcaster_scratch(r->b));
	event->component = event->controller = r->component;
	event->host = event->instance = r->host;
	event->first = event->last = what->timestamp != EVREC_UNSET ? what->timestamp : now;
	event->count = 1;
}

int evrec_recorder_emit(evrec_recorder *r, const evrec_emit *what, evrec_error *err)
{
	evrec_broadcaster *b = r->b;
	evrec_fields event;
	int64_t now;
	int code;

	buf_clear(broadcaster_scratch(b));
	code = check(what, err);
	if (code != 0) {
		broadcaster_refuse(b);
		return code;
	}
	now = evrec_clock_now(b->options.clock);
	make(r, what, now, &event);
	return broadcaster_record(b, &event, now, err);
}

int evrec_recorder_refuse(evrec_recorder *r, const char *message, evrec_error *err)
{
	broadcaster_refuse(r->b);
	return error_set(err, EVREC_EINVALID, "%s", message);
}
