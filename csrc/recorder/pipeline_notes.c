/* The notes that a pipeline gives to its sink beside the writes, if the sink takes notes (event/notes.h). */
#include "base/utf8.h"
#include "event/notes.h"
#include "recorder/pipeline_inner.h"

static struct notes *notes_of(const struct pipeline *pipeline)
{
	return pipeline->noting->ops->notes(pipeline->noting);
}

static void add(const struct pipeline *pipeline, const struct note *note)
{
	if (notes_add(notes_of(pipeline), note)) {
		pipeline->noting->ops->wake(pipeline->noting);
	}
	if (notes_take_alarm(notes_of(pipeline))) {
		outbox_report(
			pipeline->outbox, "notes",
			"there was no room for some notes of occurrences or suppressions; notes_lost counts them");
	}
}

uint64_t pipeline_notes_lost(const struct pipeline *pipeline)
{
	return pipeline->noting != NULL ? notes_lost(notes_of(pipeline)) : 0;
}

bool pipeline_has_notes(const struct pipeline *pipeline)
{
	return pipeline->noting != NULL && notes_wait(notes_of(pipeline));
}

COLD void pipeline_note_occurrence(const struct pipeline *pipeline, const struct observed *o)
{
	const evrec_fields *event = o->event;
	const struct note note = {
		.time = event->last != EVREC_UNSET ? event->last : event->event_time,
		.count = 1,
		.texts = { [NOTE_NS] = event->ns, [NOTE_NAME] = o->name },
	};

	if (notes_want_occurrences(notes_of(pipeline)) && !o->repeated) {
		add(pipeline, &note);
	}
}

/* The key that a callback chose; unset: none did. */
static evrec_str chosen_key(const struct pipeline *pipeline, const struct observed *o, enum evrec_stage stage,
                            int64_t now)
{
	evrec_suppressed what = { .stage = stage };

	if (pipeline->series != NULL) {
		series_explain(pipeline->series, o->bucket, now, &what);
	} else if (pipeline->correlator != NULL) {
		correlator_explain(pipeline->correlator, o->aggregate, o->bucket, now, &what);
	}
	return stage == EVREC_STAGE_AGGREGATED ? what.aggregate_key : what.spam_key;
}

static evrec_str either(evrec_str text, evrec_str other)
{
	return text.len != 0 ? text : other;
}

COLD void pipeline_note_suppressed(const struct pipeline *pipeline, enum evrec_stage stage, enum evrec_cause cause,
                                   const struct observed *o, uint64_t count, int64_t now)
{
	const evrec_reference *object = &o->event->regarding;
	const size_t len = o->note.len <= NOTES_MESSAGE_MAX ? o->note.len : utf8_floor(o->note, NOTES_MESSAGE_MAX);
	const struct note note = {
		.suppressed = true,
		.time = now,
		.count = count,
		.texts = {
			[NOTE_NS] = object->ns,
			[NOTE_NAME] = object->name,
			[NOTE_KIND] = object->kind,
			[NOTE_API_VERSION] = object->api_version,
			[NOTE_UID] = object->uid,
			[NOTE_TYPE] = o->event->type,
			[NOTE_REASON] = o->event->reason,
			[NOTE_STAGE] = str_from(evrec_stage_name(stage)),
			[NOTE_CAUSE] = str_from(stage == EVREC_STAGE_DROPPED ? evrec_cause_name(cause) : ""),
			[NOTE_KEY] = chosen_key(pipeline, o, stage, now),
			[NOTE_MESSAGE] = { o->note.data, len },
			[NOTE_COMPONENT] = either(o->event->component, o->event->controller),
			[NOTE_HOST] = either(o->event->host, o->event->instance),
		},
	};

	if (notes_want_suppressions(notes_of(pipeline))) {
		add(pipeline, &note);
	}
}
