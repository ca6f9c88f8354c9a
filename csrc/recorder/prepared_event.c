/* An event that is checked, and whose keys are made, once for all of its occurrences. */
#include "event/event.h"
#include "recorder/recorder.h"

struct evrec_prepared_event {
	evrec_broadcaster *b;     /* the recorder's */
	bool counted;             /* among the recorder's reasons and actions */
	evrec_fields event;       /* the one being recorded; borrows from `strings` */
	struct keys keys;         /* the event's, with their places in the caches */
	evrec_recorder *recorder; /* a reference */
	evrec_event *strings;
};

evrec_prepared_event *evrec_prepared_event_new(evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	evrec_event *strings = recorder_make_event(r, emit, err);
	evrec_prepared_event *p;

	if (strings == NULL) {
		return NULL;
	}
	p = mem_zalloc(sizeof(*p));
	if (p == NULL || !keys_make(&p->keys, evrec_event_fields(strings))) {
		evrec_event_release(strings);
		mem_free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	p->b = r->b;
	p->event = *evrec_event_fields(strings);
	p->strings = strings;
	p->recorder = r;
	r->refs++;
	return p;
}

void evrec_prepared_event_free(evrec_prepared_event *p)
{
	if (p != NULL) {
		recorder_unref(p->recorder);
		keys_free(&p->keys);
		evrec_event_release(p->strings);
		mem_free(p);
	}
}

static void stamp(evrec_fields *event, int64_t now)
{
	event->name = (evrec_str){ NULL, 0 };
	event->first = event->last = now;
}

/* For a call from inside a callback: the outer call may be recording the same event. */
static int defer(const evrec_prepared_event *p, int64_t now, evrec_error *err)
{
	evrec_fields event = p->event;

	stamp(&event, now);
	return broadcaster_defer(p->b, &event, true, err);
}

/* Counts the reason and the action once: values are never removed. */
COLD static void count(evrec_prepared_event *p)
{
	p->counted = true;
	(void)recorder_count(p->recorder, &p->recorder->reasons, p->event.reason);
	(void)recorder_count(p->recorder, &p->recorder->actions, p->event.action);
}

HOT int evrec_prepared_event_record(evrec_prepared_event *p, evrec_error *err)
{
	evrec_broadcaster *b = p->b;
	const int64_t now = evrec_clock_now(b->options.clock);
	const bool fresh = !p->counted;
	int code;

	if (fresh) {
		count(p);
	}
	if (b->busy) {
		return defer(p, now, err);
	}
	stamp(&p->event, now);
	code = broadcaster_record(b, &p->event, &p->keys, now, err);
	if (fresh) {
		recorders_tell(b);
	}
	return code;
}

int evrec_prepared_event_record_note(evrec_prepared_event *p, evrec_str note, evrec_error *err)
{
	const evrec_fields *event = evrec_event_fields(p->strings);
	const evrec_emit emit = {
		.regarding = &event->regarding,
		.related = event->related.kind.len != 0 ? &event->related : NULL,
		.type = event->type,
		.reason = event->reason,
		.action = event->action,
		.note = note,
		.annotations = event->annotations,
		.labels = event->labels,
		.timestamp = EVREC_UNSET,
	};

	return evrec_recorder_emit(p->recorder, &emit, err);
}
