#include "flow/lane.h"

#include "base/clock.h"
#include "correlate/correlator.h"
#include "deliver/sender.h"
#include "event/event.h"
#include "flow/suppressed.h"
#include "flow/write.h"

struct lane {
	evrec_sink *sink;
	evrec_clock *clock;
	const struct lane_listener *listener;
	evrec_correlator_options options;
	evrec_correlator *correlator;
	struct sender *sender; /* owns the outbox and the transport; NULL: a forked child had no memory for one */
	struct outbox *outbox;
	struct suppressed suppressed;
	struct keys dropped_keys; /* of what the outbox gave up */
	size_t max_message_bytes;
	struct buf note; /* an aggregate's, where it had to be cleaned or cut */
	uint64_t received, rate_limited, dropped_memory;
	unsigned fork_generation;
	bool stopped, ended;
	bool alone;            /* it was stopped by itself, not with its broadcaster */
	bool over;             /* and all was written or dropped: its stats are what is left of it */
	evrec_sink_stats last; /* then */
};

/* What a lane needs anew in a forked child. False: no memory, or what the transport said. */
static bool open_parts(struct lane *lane, evrec_error *err)
{
	struct sender_options options = {
		.max_in_flight = lane->sink->options.max_in_flight,
		.clock = lane->clock,
		.threadless = lane->sink->options.threadless,
	};
	struct transport *transport;

	lane->fork_generation = sender_fork_generation();
	lane->outbox = NULL;
	lane->sender = NULL;
	lane->correlator = evrec_correlator_new(&lane->options, err);
	if (lane->correlator == NULL) {
		return false;
	}
	transport = lane->sink->open(lane->sink, err);
	if (transport == NULL) {
		return false;
	}
	lane->outbox = outbox_new(&write_ops, &lane->sink->options.limits,
	                          (uint64_t)clock_monotonic(lane->clock) ^ (uintptr_t)lane);
	if (lane->sink->options.spool.len != 0) {
		options.spooler = spooler_new(lane->sink->options.spool, &write_codec);
	}
	if (lane->outbox == NULL || (options.spooler == NULL && lane->sink->options.spool.len != 0)) {
		transport->ops->free(transport);
		spooler_free(options.spooler);
		if (lane->outbox != NULL) {
			outbox_free(lane->outbox);
		}
	} else {
		lane->sender = sender_new(lane->outbox, transport, &options);
	}
	if (lane->sender == NULL) {
		lane->outbox = NULL;
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	return lane->sender != NULL;
}

struct lane *lane_new(evrec_sink *sink, const evrec_correlator_options *options, evrec_clock *clock,
                      size_t max_message_bytes, const struct lane_listener *listener, evrec_error *err)
{
	struct lane *lane = mem_zalloc(sizeof(*lane));

	if (lane == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	lane->sink = evrec_sink_retain(sink);
	lane->clock = evrec_clock_retain(clock);
	lane->listener = listener;
	lane->max_message_bytes = max_message_bytes;
	if (options != NULL) {
		lane->options = *options;
	} else {
		evrec_correlator_options_init(&lane->options);
	}
	if (open_parts(lane, err)) {
		return lane;
	}
	lane_free(lane);
	return NULL;
}

/* Its memory, but for the lane itself; what has to be sent still is the sender's affair. */
static void free_parts(struct lane *lane)
{
	if (lane->sender != NULL && lane->fork_generation == sender_fork_generation()) {
		sender_release(lane->sender);
	}
	lane->sender = NULL;
	lane->outbox = NULL;
	evrec_correlator_free(lane->correlator);
	lane->correlator = NULL;
	suppressed_free(&lane->suppressed);
	keys_free(&lane->dropped_keys);
	buf_free(&lane->note);
}

void lane_free(struct lane *lane)
{
	free_parts(lane);
	evrec_clock_release(lane->clock);
	evrec_sink_release(lane->sink);
	mem_free(lane);
}

/*
 * In a forked child the parent still writes what it recorded, by a thread that does not exist here, under locks that
 * may be held for ever. The child leaves all that alone, memory and all, and keeps books of its own from here on.
 */
static bool ready(struct lane *lane)
{
	if (!lane->over && lane->fork_generation != sender_fork_generation()) {
		evrec_correlator_free(lane->correlator);
		suppressed_free(&lane->suppressed);
		lane->received = lane->rate_limited = lane->dropped_memory = 0;
		(void)open_parts(lane, NULL);
	}
	return lane->sender != NULL;
}

static void show_drop(struct lane *lane, const struct entry *entry)
{
	evrec_fields event = write_fields(entry->item, BODY_WHOLE);

	if (keys_make(&lane->dropped_keys, &event)) {
		suppressed_drop(&lane->suppressed, entry->cause, &lane->dropped_keys, event.note, entry->count,
		                evrec_clock_now(lane->clock));
	}
	if (lane->listener->dropped != NULL) {
		lane->listener->dropped(lane->listener->ctx, &event, evrec_cause_name(entry->cause));
	}
}

/*
 * What a recording call takes note of, at most: more than each can cause, so what waits grows less, and not all that
 * expired at once.
 */
#define NEWS_WHILE_RECORDING 4

static void take_news(struct lane *lane, size_t max)
{
	struct outbox_report report;
	struct entry *entry;

	while (max-- > 0 && (entry = outbox_collect(lane->outbox)) != NULL) {
		if (entry->dropped) {
			show_drop(lane, entry);
		}
		/* A renamed one that was dropped too: its old name is somebody else's. */
		if (!entry->dropped || entry->name[0] != '\0') {
			evrec_correlator_answered(lane->correlator, entry->id, str_from(entry->name),
			                          str_from(entry->resource_version));
		}
		outbox_recycle(lane->outbox, entry);
	}
	while (outbox_next_report(lane->outbox, &report)) {
		lane->listener->error(lane->listener->ctx, report.message, report.name);
	}
}

/* Its thread is through. */
static void finish(struct lane *lane)
{
	/* What was answered since. */
	take_news(lane, SIZE_MAX);
	lane_get_stats(lane, &lane->last);
	lane->over = true;
	free_parts(lane);
	evrec_sink_release(lane->sink);
	lane->sink = NULL;
}

static void drain(struct lane *lane)
{
	if (!ready(lane)) {
		return;
	}
	if (outbox_has_news(lane->outbox)) {
		take_news(lane, SIZE_MAX);
	}
	/* A sink that was stopped gives its thread back once nothing waits, and then its memory. */
	if (lane->stopped && !lane->ended && outbox_empty(lane->outbox)) {
		lane_end(lane);
	}
	if (lane->alone && lane->ended && sender_has_ended(lane->sender)) {
		finish(lane);
	}
}

/* Tells the listener of an event that goes no further, as it was observed. */
static void tell_dropped(const struct lane *lane, const struct observed *o, const char *why)
{
	evrec_fields event;

	if (lane->listener->dropped != NULL) {
		observed_fields(o, &event);
		lane->listener->dropped(lane->listener->ctx, &event, why);
	}
}

static void drop(struct lane *lane, const struct observed *o, const struct keys *keys, enum evrec_cause cause,
                 int64_t now)
{
	if (keys != NULL) {
		suppressed_add(&lane->suppressed, EVREC_STAGE_DROPPED, cause, keys, o, now);
	}
	tell_dropped(lane, o, evrec_cause_name(cause));
}

/* An aggregate's message is a callback's, or has a prefix: clean and bounded as the recorder made all others. */
static bool bound_note(struct lane *lane, struct observed *o)
{
	if (o->note.data == o->event->note.data) {
		return true;
	}
	buf_clear(&lane->note);
	o->note = text_clean(o->note, lane->max_message_bytes, &lane->note);
	return !lane->note.failed;
}

void lane_record(struct lane *lane, const evrec_fields *event, struct keys *keys, int64_t now)
{
	struct occurrence occurrence;
	struct observed observed;
	enum evrec_cause cause;

	if (lane->stopped) {
		return;
	}
	if (!ready(lane)) {
		lane->received++;
		lane->dropped_memory++;
		return;
	}
	if (outbox_has_news(lane->outbox)) {
		take_news(lane, NEWS_WHILE_RECORDING);
	}
	if (keys == NULL || correlator_observe(lane->correlator, event, keys, now, &observed) != 0 ||
	    !bound_note(lane, &observed)) {
		lane->received++;
		lane->dropped_memory++;
		observed_init(&observed, event);
		drop(lane, &observed, keys, EVREC_CAUSE_MEMORY, now);
		return;
	}
	/* Only now: callbacks have run, to which the equation has to hold. */
	lane->received++;
	if (observed.skip) {
		lane->rate_limited++;
		suppressed_add(&lane->suppressed, EVREC_STAGE_RATE_LIMITED, EVREC_CAUSES, keys, &observed, now);
		tell_dropped(lane, &observed, evrec_why_name(EVREC_RATE_LIMITED));
		return;
	}
	occurrence = (struct occurrence){
		.id = observed.handle,
		.verb = observed.patch ? VERB_PATCH : VERB_CREATE,
		.important = write_is_important(event),
		.now = clock_coarse(lane->clock),
		.draft = &observed,
	};
	if (!outbox_submit(lane->outbox, &occurrence, &cause)) {
		drop(lane, &observed, keys, cause, now);
	} else if (observed.why == EVREC_AGGREGATED) {
		suppressed_add(&lane->suppressed, EVREC_STAGE_AGGREGATED, EVREC_CAUSES, keys, &observed, now);
	}
}

void lane_poll(struct lane *lane, int64_t deadline)
{
	if (ready(lane)) {
		sender_begin(lane->sender);
		if (sender_needs_step(lane->sender)) {
			sender_step_by(lane->sender, deadline);
		}
	}
	drain(lane);
}

bool lane_empty(struct lane *lane)
{
	return !ready(lane) || outbox_empty(lane->outbox);
}

/* Under a fake clock that only the caller can move, a write that backs off does so for ever. */
static bool stuck(struct lane *lane)
{
	return evrec_clock_is_fake(lane->clock) && outbox_stalled(lane->outbox, clock_monotonic(lane->clock));
}

bool lane_wait(struct lane *lane, int64_t deadline)
{
	const int64_t slice = sender_needs_step(lane->sender) ? EVREC_SECOND / 500 : EVREC_SECOND / 20;
	int64_t now = clock_monotonic(evrec_clock_real());

	if (stuck(lane)) {
		return false;
	}
	(void)outbox_wait(lane->outbox, deadline - now > slice ? now + slice : deadline);
	return true;
}

void lane_stop(struct lane *lane)
{
	lane->alone = lane->alone || !lane->ended;
	lane->stopped = true;
}

void lane_end(struct lane *lane)
{
	lane->stopped = true;
	if (!lane->ended && ready(lane)) {
		sender_end(lane->sender);
	}
	lane->ended = true;
}

void lane_join(struct lane *lane, int64_t deadline)
{
	if (ready(lane)) {
		(void)sender_join(lane->sender, deadline);
		drain(lane);
	}
}

void lane_get_stats(const struct lane *lane, evrec_sink_stats *stats)
{
	const bool forked = lane->fork_generation != sender_fork_generation();
	struct outbox_stats outbox = { 0 };
	size_t i;

	if (lane->over) {
		*stats = forked ? (evrec_sink_stats){ .name = lane->last.name } : lane->last;
		return;
	}
	*stats = (evrec_sink_stats){ .name = lane->sink->name };
	if (forked) {
		return; /* a child that has recorded nothing yet: the lock is the parent's, perhaps held for ever */
	}
	if (lane->outbox != NULL) {
		outbox_get_stats(lane->outbox, &outbox);
	}
	if (lane->correlator != NULL) {
		evrec_correlator_get_stats(lane->correlator, &stats->correlator);
	}
	stats->received = lane->received + outbox.restored;
	stats->restored = outbox.restored;
	stats->spooled = outbox.spooled;
	stats->rate_limited = lane->rate_limited;
	stats->created = outbox.created;
	stats->patched = outbox.patched;
	stats->coalesced = outbox.coalesced;
	stats->pending = outbox.pending;
	stats->retries = outbox.retries;
	stats->pending_writes = outbox.writes;
	stats->pending_bytes = outbox.bytes;
	stats->errors_lost = outbox.reports_lost;
	for (i = 0; i < EVREC_CAUSES; i++) {
		stats->dropped[i] = outbox.dropped[i];
	}
	stats->dropped[EVREC_CAUSE_MEMORY] += lane->dropped_memory;
}

void lane_explain(const struct lane *lane, const evrec_reference *object,
                  bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx)
{
	/* Neither in a child that has recorded nothing yet, nor without a correlator. */
	if (lane->correlator != NULL && lane->fork_generation == sender_fork_generation()) {
		suppressed_visit(&lane->suppressed, lane->correlator, object, evrec_clock_now(lane->clock), func, ctx);
	}
}
