#include "recorder/pipeline.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/phase.h"
#include "correlate/correlator.h"
#include "event/event.h"
#include "recorder/suppressed.h"
#include "sender/sender.h"
#include "sink/write.h"

enum pipeline_phase {
	PIPELINE_RUNNING, /* takes events */
	PIPELINE_STOPPED, /* by pipeline_stop: takes no event; the waiting writes are made, with all their tries */
	PIPELINE_ENDING,  /* stopped, and the sender was told to end; its thread may still run */
	PIPELINE_OVER,    /* stopped, the sender has ended, and the listener was told everything: may be freed */
	PIPELINE_SHUT,    /* ended together with its broadcaster, which keeps it for its stats */
};

static const unsigned legal_steps[] = {
	[PIPELINE_RUNNING] = PHASE_BIT(PIPELINE_STOPPED) | PHASE_BIT(PIPELINE_SHUT),
	[PIPELINE_STOPPED] = PHASE_BIT(PIPELINE_ENDING),
	[PIPELINE_ENDING] = PHASE_BIT(PIPELINE_OVER),
	[PIPELINE_OVER] = 0,
	[PIPELINE_SHUT] = 0,
};

struct pipeline {
	enum pipeline_phase phase;
	evrec_sink *sink;
	evrec_clock *clock;
	const struct pipeline_listener *listener;
	evrec_correlator_options options;
	evrec_correlator *correlator;
	struct sender *sender; /* owns the outbox and the protocol; NULL: a forked child had no memory for one */
	struct outbox *outbox;
	struct suppressed suppressed;
	struct keys dropped_keys; /* of a write that the outbox dropped */
	size_t max_message_bytes;
	struct buf note; /* an aggregate's note, if it had to be cleaned or cut */
	uint64_t received, rate_limited, dropped_memory;
	unsigned fork_generation;
};

static void enter_phase(struct pipeline *pipeline, enum pipeline_phase phase)
{
	phase_step(&pipeline->phase, phase, legal_steps);
}

/* Makes the parts that a forked child needs anew. False, with *err set: no memory, or the protocol could not be made. */
static bool open_parts(struct pipeline *pipeline, evrec_error *err)
{
	struct sender_options options = {
		.clock = pipeline->clock,
		.threadless = pipeline->sink->options.threadless,
		.name = sink_name(pipeline->sink),
		.loud = pipeline->listener->loud,
	};
	struct protocol *protocol;

	pipeline->fork_generation = sender_fork_generation();
	pipeline->outbox = NULL;
	pipeline->sender = NULL;
	pipeline->correlator = evrec_correlator_new(&pipeline->options, err);
	if (pipeline->correlator == NULL) {
		return false;
	}
	protocol = pipeline->sink->open(pipeline->sink, err);
	if (protocol == NULL) {
		return false;
	}
	pipeline->outbox = outbox_new(&write_ops, &pipeline->sink->options.limits,
	                              (uint64_t)clock_monotonic(pipeline->clock) ^ (uintptr_t)pipeline);
	if (pipeline->sink->options.spool.len != 0) {
		options.spooler =
			spooler_new(pipeline->sink->options.spool, pipeline->sink->options.spool_after, &write_codec);
	}
	if (pipeline->outbox == NULL || (options.spooler == NULL && pipeline->sink->options.spool.len != 0)) {
		protocol->ops->free(protocol);
		spooler_free(options.spooler);
		if (pipeline->outbox != NULL) {
			outbox_free(pipeline->outbox);
		}
	} else {
		pipeline->sender = sender_new(pipeline->outbox, protocol, &options);
	}
	if (pipeline->sender == NULL) {
		pipeline->outbox = NULL;
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	return pipeline->sender != NULL;
}

struct pipeline *pipeline_new(evrec_sink *sink, const evrec_correlator_options *options, evrec_clock *clock,
                              size_t max_message_bytes, const struct pipeline_listener *listener, evrec_error *err)
{
	struct pipeline *pipeline = mem_zalloc(sizeof(*pipeline));

	if (pipeline == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	pipeline->sink = evrec_sink_retain(sink);
	pipeline->clock = evrec_clock_retain(clock);
	pipeline->listener = listener;
	pipeline->max_message_bytes = max_message_bytes;
	if (options != NULL) {
		pipeline->options = *options;
	} else {
		evrec_correlator_options_init(&pipeline->options);
	}
	if (open_parts(pipeline, err)) {
		return pipeline;
	}
	pipeline_free(pipeline);
	return NULL;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (pipeline->sender != NULL && pipeline->fork_generation == sender_fork_generation()) {
		sender_release(pipeline->sender);
	}
	evrec_correlator_free(pipeline->correlator);
	suppressed_free(&pipeline->suppressed);
	keys_free(&pipeline->dropped_keys);
	buf_free(&pipeline->note);
	evrec_clock_release(pipeline->clock);
	evrec_sink_release(pipeline->sink);
	mem_free(pipeline);
}

/*
 * In a forked child the parent still writes what it recorded, by a thread that does not exist here, under locks that
 * may be held for ever. The child leaves all that alone, memory and all, and keeps books of its own from here on.
 */
static bool ready(struct pipeline *pipeline)
{
	if (pipeline->fork_generation != sender_fork_generation()) {
		evrec_correlator_free(pipeline->correlator);
		suppressed_free(&pipeline->suppressed);
		pipeline->received = pipeline->rate_limited = pipeline->dropped_memory = 0;
		(void)open_parts(pipeline, NULL);
	}
	return pipeline->sender != NULL;
}

static void tell_dropped(const struct pipeline *pipeline, const struct pipeline_drop *dropped)
{
	pipeline->listener->dropped(pipeline->listener->ctx, dropped);
}

static void show_drop(struct pipeline *pipeline, const struct entry *entry)
{
	evrec_fields event = write_fields(entry->item, BODY_WHOLE);

	if (keys_make(&pipeline->dropped_keys, &event)) {
		suppressed_drop(&pipeline->suppressed, entry->cause, &pipeline->dropped_keys, event.note, entry->count,
		                evrec_clock_now(pipeline->clock));
	}
	tell_dropped(pipeline, &(struct pipeline_drop){ &event, entry->cause, entry->count });
}

/*
 * A recording call takes at most so many answers and drops out of the outbox. One call causes fewer than these, so the
 * backlog shrinks; and no single call pays for a thousand writes that expired together.
 */
#define NEWS_WHILE_RECORDING 4

static void take_news(struct pipeline *pipeline, size_t max)
{
	struct outbox_message message;
	struct entry *entry;

	while (max-- > 0 && (entry = outbox_collect(pipeline->outbox)) != NULL) {
		if (entry->dropped) {
			show_drop(pipeline, entry);
		}
		/* A renamed event is told even if it was dropped: its old name belongs to another event. */
		if (!entry->dropped || entry->name[0] != '\0') {
			correlator_answered(pipeline->correlator, entry->id, str_from(entry->name),
			                    str_from(entry->resource_version));
		}
		outbox_recycle(pipeline->outbox, entry);
	}
	while (outbox_next_message(pipeline->outbox, &message)) {
		pipeline->listener->error(pipeline->listener->ctx, message.message, message.name,
		                          sink_name(pipeline->sink));
	}
}

static void drain(struct pipeline *pipeline)
{
	const bool has_sender = ready(pipeline);

	if (has_sender && outbox_has_news(pipeline->outbox)) {
		take_news(pipeline, SIZE_MAX);
	}
	if (pipeline->phase == PIPELINE_STOPPED && (!has_sender || outbox_empty(pipeline->outbox))) {
		pipeline_end(pipeline);
	}
	if (pipeline->phase == PIPELINE_ENDING && (!has_sender || sender_has_ended(pipeline->sender))) {
		if (has_sender) {
			/* The thread may have got answers since the first look. */
			take_news(pipeline, SIZE_MAX);
		}
		enter_phase(pipeline, PIPELINE_OVER);
	}
}

static void drop(struct pipeline *pipeline, const struct observed *o, const struct keys *keys, enum evrec_cause cause,
                 int64_t now)
{
	evrec_fields event;

	if (keys != NULL) {
		suppressed_add(&pipeline->suppressed, EVREC_STAGE_DROPPED, cause, keys, o, now);
	}
	observed_fields(o, &event);
	tell_dropped(pipeline, &(struct pipeline_drop){ &event, cause, 1 });
}

/* The event, as it was observed, had no token. */
static void tell_limited(const struct pipeline *pipeline, const struct observed *o)
{
	evrec_fields event;

	if (pipeline->listener->limited != NULL) {
		observed_fields(o, &event);
		pipeline->listener->limited(pipeline->listener->ctx, &event);
	}
}

/* An aggregate's message comes from a callback or has a prefix, so it is cleaned and cut here, not by the recorder. */
static bool bound_note(struct pipeline *pipeline, struct observed *o)
{
	if (o->note.data == o->event->note.data) {
		return true;
	}
	buf_clear(&pipeline->note);
	o->note = text_clean(o->note, pipeline->max_message_bytes, &pipeline->note);
	return !pipeline->note.failed;
}

/* An event for which there was no memory, as it was recorded. */
static void drop_for_memory(struct pipeline *pipeline, const evrec_fields *event, const struct keys *keys, int64_t now)
{
	struct observed observed;

	pipeline->received++;
	pipeline->dropped_memory++;
	observed_init(&observed, event);
	drop(pipeline, &observed, keys, EVREC_CAUSE_MEMORY, now);
}

static void get_event(const void *observed, evrec_fields *event)
{
	observed_fields(observed, event);
}

void pipeline_record(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now)
{
	struct occurrence occurrence;
	struct write_draft draft;
	struct observed observed;
	enum evrec_cause cause;

	if (pipeline->phase != PIPELINE_RUNNING) {
		return;
	}
	if (!ready(pipeline)) {
		drop_for_memory(pipeline, event, keys, now);
		return;
	}
	if (outbox_has_news(pipeline->outbox)) {
		take_news(pipeline, NEWS_WHILE_RECORDING);
	}
	if (keys == NULL || correlator_observe(pipeline->correlator, event, keys, now, &observed) != 0 ||
	    !bound_note(pipeline, &observed)) {
		drop_for_memory(pipeline, event, keys, now);
		return;
	}
	/* Counted after the correlator's callbacks have run: the equation of the stats holds for them too. */
	pipeline->received++;
	if (observed.skip) {
		pipeline->rate_limited++;
		suppressed_add(&pipeline->suppressed, EVREC_STAGE_RATE_LIMITED, EVREC_CAUSES, keys, &observed, now);
		tell_limited(pipeline, &observed);
		return;
	}
	draft = (struct write_draft){
		.note = observed.note,
		.note_changes = observed.why == EVREC_AGGREGATED,
		.last = observed.last,
		.count = observed.count,
		.get_event = get_event,
		.source = &observed,
	};
	occurrence = (struct occurrence){
		.id = observed.handle,
		.verb = observed.patch ? VERB_PATCH : VERB_CREATE,
		.important = write_is_important(event),
		.now = clock_coarse(pipeline->clock),
		.draft = &draft,
	};
	if (!outbox_submit(pipeline->outbox, &occurrence, &cause)) {
		drop(pipeline, &observed, keys, cause, now);
	} else if (observed.why == EVREC_AGGREGATED) {
		suppressed_add(&pipeline->suppressed, EVREC_STAGE_AGGREGATED, EVREC_CAUSES, keys, &observed, now);
	}
}

void pipeline_poll(struct pipeline *pipeline, int64_t deadline)
{
	if (ready(pipeline)) {
		sender_begin(pipeline->sender);
		if (sender_needs_step(pipeline->sender)) {
			sender_step_by(pipeline->sender, deadline);
		}
	}
	drain(pipeline);
}

bool pipeline_empty(struct pipeline *pipeline)
{
	return !ready(pipeline) || outbox_empty(pipeline->outbox);
}

bool pipeline_wait(struct pipeline *pipeline, int64_t deadline)
{
	const int64_t slice = sender_needs_step(pipeline->sender) ? EVREC_SECOND / 500 : EVREC_SECOND / 20;
	int64_t now = clock_monotonic(evrec_clock_real());

	if (sender_is_stalled(pipeline->sender)) {
		return false;
	}
	(void)outbox_wait(pipeline->outbox, deadline - now > slice ? now + slice : deadline);
	return true;
}

void pipeline_stop(struct pipeline *pipeline)
{
	if (pipeline->phase == PIPELINE_RUNNING) {
		enter_phase(pipeline, PIPELINE_STOPPED);
	}
}

void pipeline_end(struct pipeline *pipeline)
{
	if (pipeline->phase == PIPELINE_RUNNING) {
		enter_phase(pipeline, PIPELINE_SHUT);
	} else if (pipeline->phase == PIPELINE_STOPPED) {
		enter_phase(pipeline, PIPELINE_ENDING);
	} else {
		return;
	}
	if (ready(pipeline)) {
		sender_end(pipeline->sender);
	}
}

bool pipeline_is_over(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_OVER;
}

void pipeline_join(struct pipeline *pipeline, int64_t deadline)
{
	if (ready(pipeline)) {
		(void)sender_join(pipeline->sender, deadline);
		drain(pipeline);
	}
}

evrec_str pipeline_secret(const struct pipeline *pipeline)
{
	return pipeline->sink->secret;
}

void pipeline_get_stats(const struct pipeline *pipeline, evrec_sink_stats *stats)
{
	struct outbox_stats outbox = { 0 };
	size_t i;

	*stats = (evrec_sink_stats){ .number = 0 };
	(void)snprintf(stats->name, sizeof(stats->name), "%s", sink_name(pipeline->sink));
	if (pipeline->fork_generation != sender_fork_generation()) {
		/* A child that has recorded nothing yet. The outbox's lock is the parent's, perhaps held for ever. */
		return;
	}
	if (pipeline->outbox != NULL) {
		outbox_get_stats(pipeline->outbox, &outbox);
		sender_get_throttle(pipeline->sender, &stats->throttle);
	}
	if (pipeline->correlator != NULL) {
		evrec_correlator_get_stats(pipeline->correlator, &stats->correlator);
	}
	stats->received = pipeline->received + outbox.restored;
	stats->restored = outbox.restored;
	stats->spooled = outbox.spooled;
	stats->rate_limited = pipeline->rate_limited;
	stats->created = outbox.created;
	stats->patched = outbox.patched;
	stats->coalesced = outbox.coalesced;
	stats->pending = outbox.pending;
	stats->retries = outbox.retries;
	stats->pending_writes = outbox.writes;
	stats->pending_bytes = outbox.bytes;
	stats->errors_lost = outbox.messages_lost;
	for (i = 0; i < EVREC_CAUSES; i++) {
		stats->dropped[i] = outbox.dropped[i];
	}
	stats->dropped[EVREC_CAUSE_MEMORY] += pipeline->dropped_memory;
}

void pipeline_explain(const struct pipeline *pipeline, const evrec_reference *object,
                      bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx)
{
	/* Nothing is known without a correlator, or in a child that has recorded nothing yet. */
	if (pipeline->correlator != NULL && pipeline->fork_generation == sender_fork_generation()) {
		suppressed_visit(&pipeline->suppressed, pipeline->correlator, object, evrec_clock_now(pipeline->clock),
		                 func, ctx);
	}
}
