#include "recorder/pipeline_inner.h"
#include "sink/trace.h"

static void show_drop(struct pipeline *pipeline, const struct entry *entry)
{
	evrec_fields event = pipeline->sink->traces ? trace_fields(entry->item) : write_fields(entry->item, BODY_WHOLE);
	uint32_t own = entry->count;
	struct observed observed;

	/* The processes that recorded these occurrences report their drops. */
	for (const struct receipt *receipt = entry->receipts; receipt != NULL; receipt = receipt->next) {
		own -= receipt->n < own ? receipt->n : own;
	}
	if (pipeline->noting != NULL) {
		observed_init(&observed, &event);
		pipeline_note_suppressed(pipeline, EVREC_STAGE_DROPPED, entry->cause, &observed, entry->count,
		                         evrec_clock_now(pipeline->clock));
	}
	if (keys_make(&pipeline->own_keys, &event)) {
		suppressed_drop(&pipeline->suppressed, entry->cause, &pipeline->own_keys, event.note, entry->count,
		                evrec_clock_now(pipeline->clock));
	}
	if (own != 0 || entry->receipts == NULL) {
		pipeline_tell_dropped(pipeline, &(struct pipeline_drop){ &event, entry->cause, own });
	}
}

/* A renamed event's name is passed on even if it was dropped: its old name belongs to another event. */
static void tell_correlator(const struct pipeline *pipeline, const struct entry *entry)
{
	if (!entry->dropped || entry_name(entry)[0] != '\0') {
		correlator_answered(pipeline->correlator, entry->id, str_from(entry_name(entry)),
		                    str_from(entry_resource_version(entry)));
	}
}

static void tell_series(const struct pipeline *pipeline, const struct entry *entry)
{
	if (entry->dropped || entry->forgone) {
		series_dropped(pipeline->series, entry->id, entry->cause, evrec_clock_now(pipeline->clock));
		/* A create becomes a patch when the server says that it has the event. Others were patches from the beginning. */
		if ((entry->verb == VERB_PATCH && !entry->known) || entry_may_exist(entry)) {
			series_maybe_created(pipeline->series, entry->id, str_from(entry_name(entry)), entry->base);
		}
	} else {
		series_answered(pipeline->series, entry->id, str_from(entry_name(entry)), entry->base);
	}
}

static void tell(struct pipeline *pipeline, const struct entry *entry)
{
	if (entry->dropped) {
		show_drop(pipeline, entry);
	}
	if (pipeline->series != NULL) {
		tell_series(pipeline, entry);
	} else if (pipeline->correlator != NULL) {
		tell_correlator(pipeline, entry);
	}
}

/* Takes over an event of an earlier process: a series continues it, or a correlator adds that process's count. */
static void take_over_one(const struct pipeline *pipeline, const void *item)
{
	const evrec_fields event = write_fields(item, BODY_WHOLE);
	const int64_t now = evrec_clock_now(pipeline->clock);

	if (pipeline->series != NULL) {
		/* Without memory it is created, and then adopted. */
		(void)series_resume(pipeline->series, &event, now);
	} else if (pipeline->correlator != NULL) {
		correlator_recover(pipeline->correlator, &event, write_sure(item), now);
	}
}

static void take_over(struct pipeline *pipeline, size_t max)
{
	void *item;

	while (max-- > 0 && (item = outbox_next_brought(pipeline->outbox)) != NULL) {
		take_over_one(pipeline, item);
		outbox_discard(pipeline->outbox, item);
	}
}

void pipeline_take_messages(struct pipeline *pipeline)
{
	struct outbox_message message;

	while (outbox_next_message(pipeline->outbox, &message)) {
		pipeline->listener->error(pipeline->listener->ctx, message.message, message.name,
		                          sink_name(pipeline->sink));
	}
}

/* The number of answers that are taken while the outbox's lock is held once. */
static size_t at_once(size_t max)
{
	return max < 32 ? max : 32;
}

void pipeline_take_news(struct pipeline *pipeline, size_t max)
{
	struct entry *entries;

	take_over(pipeline, max);
	while (max > 0 && (entries = outbox_collect(pipeline->outbox, at_once(max))) != NULL) {
		for (struct entry *entry = entries; entry != NULL; entry = entry->next) {
			if (pipeline->series != NULL) {
				pipeline_settle_series(pipeline, entry);
			}
			if (!entry->spooled) {
				tell(pipeline, entry);
			}
			pipeline_settle_entry(pipeline, entry);
			max--;
		}
		outbox_recycle(pipeline->outbox, entries);
	}
	pipeline_take_messages(pipeline);
}

bool pipeline_take_all_news(struct pipeline *pipeline)
{
	const bool has_sender = pipeline_ready(pipeline);

	if (has_sender && outbox_has_news(pipeline->outbox)) {
		pipeline_take_news(pipeline, SIZE_MAX);
	}
	return has_sender;
}
