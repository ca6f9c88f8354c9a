#include "base/utf8.h"
#include "outbox/outbox.h"
#include "recorder/explanation.h"
#include "recorder/sharing_inner.h"

#include <time.h>

#define AT_ONCE 256 /* occurrences that are recorded while a recording call may have to wait */

evrec_watch *sharing_sink_at(const struct hub *hub, size_t i)
{
	const size_t at = watch_list_find_sink(&hub->sinks, i + 1);

	return at < hub->sinks.len && hub->sinks.items[at]->number == i + 1 ? hub->sinks.items[at] : NULL;
}

/* ---- what an owner records for workers ---- */

static void settle(struct sharing *sh, const struct share_event *e, size_t sink, unsigned end, uint32_t n)
{
	if (e->source != 0) {
		share_settled(sh->share, e->source, e->node, sink, end, n);
	}
}

static void choose(const struct share_event *e, size_t sink, struct chosen *chosen)
{
	const struct frame_keys *k = &e->event->keys[sink];

	*chosen = (struct chosen){ .keys = CHOICE_NONE };
	if (sink < e->event->sinks && k->has_aggregate) {
		chosen->keys = CHOICE_MADE;
		chosen->aggregate_key =
			(struct buf){ .data = (char *)(uintptr_t)k->aggregate.data, .len = k->aggregate.len };
		chosen->local_key = (struct buf){ .data = (char *)(uintptr_t)k->local.data, .len = k->local.len };
	}
	if (sink < e->event->sinks && k->has_spam) {
		chosen->spam_key = CHOICE_MADE;
		chosen->spam = (struct buf){ .data = (char *)(uintptr_t)k->spam.data, .len = k->spam.len };
	}
}

static void record_to(struct sharing *sh, const struct share_event *e, size_t i, const evrec_fields *event,
                      struct keys *keys, int64_t now)
{
	const struct receipt_id receipt = { e->source, e->node };
	const struct origin origin = { e->process, e->source, e->batch, (e->flags & FRAME_RESENT) != 0,
		                       (e->flags & FRAME_UNSURE) != 0 };
	evrec_watch *watch = sharing_sink_at(sh->hub, i);
	const bool again = (e->flags & FRAME_AGAIN) != 0 && event->name.len != 0;
	struct chosen chosen;

	if (watch == NULL || watch->phase != WATCH_RUNNING) {
		if (e->source == 0) {
			hub_tell_drop(sh->hub, event, evrec_cause_name(EVREC_CAUSE_CLOSED), 1);
		}
		settle(sh, e, i, EVREC_CAUSE_CLOSED, 1);
		return;
	}
	choose(e, i, &chosen);
	watch->chosen = &chosen;
	if (e->source == 0) {
		(void)pipeline_record_for(watch->pipeline, event, keys, now, NULL, &origin, again);
	} else {
		sh->unsettled++;
		if (!pipeline_record_for(watch->pipeline, event, keys, now, &receipt, &origin, again)) {
			sh->unsettled--;
			settle(sh, e, i, EVREC_CAUSE_CLOSED, 1);
		}
	}
	watch->chosen = NULL;
}

static void on_record(void *ctx, const struct share_event *e)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	evrec_fields event = e->event->fields;

	hub_lock(hub);
	for (uint32_t n = 0; n < e->n; n++) {
		const int64_t now = evrec_clock_now(hub->options.clock);
		struct keys *keys;

		if (n != 0 && n % AT_ONCE == 0) {
			/*
			 * Pauses, as a thread that waits for the lock would not get it if this one takes it again at
			 * once.
			 */
			hub_unlock(hub);
			(void)nanosleep(&(struct timespec){ 0, 1 }, NULL);
			hub_lock(hub);
		}
		event.first = event.last = n == 0 ? e->first : e->last;
		event.name = n == 0 ? e->name : (evrec_str){ NULL, 0 };
		keys = keys_make(&sh->keys, &event) ? &sh->keys : NULL;
		for (unsigned i = 0; i < hub->last_number; i++) {
			if ((e->flags & FRAME_ENDED(i)) == 0) {
				record_to(sh, e, i, &event, keys, now);
			}
		}
	}
	hub_unlock(hub);
}

/*
 * Whether an owner that ends has not written the occurrence: the worker still has it, and sends it to the next owner.
 */
static bool is_left_to_worker(struct sharing *sh, const struct pipeline_settled *s)
{
	return s->as == SETTLED_DROPPED && s->cause == EVREC_CAUSE_CLOSED && atomic_load(&sh->stops) &&
	       share_has_source(sh->share, s->receipt.source);
}

/* Reports a drop for the process that has recorded the event, if it has ended or is about to. */
static void tell_for_source(struct hub *hub, const struct pipeline_settled *s)
{
	if (s->as == SETTLED_DROPPED && !share_has_source(hub->sharing->share, s->receipt.source)) {
		hub_tell_drop(hub, NULL, evrec_cause_name(s->cause), s->n);
	}
}

/* ---- which counts the next owner is not to be told of again ---- */

/* Occurrences that settled, and whose acknowledgements are held. */
struct settled {
	size_t sink;
	struct pipeline_settled as;
};

/* Whether the states need to change for it: a process that is not connected any more records it again. */
static bool is_noted(struct sharing *sh, const struct settled *s)
{
	return sharing_sink_at(sh->hub, s->sink) != NULL && s->as.handle != 0 &&
	       share_has_source(sh->share, s->as.receipt.source);
}

static void acknowledge(struct sharing *sh, const struct settled *s)
{
	pipeline_acknowledge(sharing_sink_at(sh->hub, s->sink)->pipeline, s->as.receipt.source, s->as.handle, s->as.as,
	                     s->as.n);
}

static void note_in_batch(const struct sharing *sh, const struct settled *s)
{
	pipeline_tell(sharing_sink_at(sh->hub, s->sink)->pipeline, s->as.receipt.source, s->as.handle, s->as.as,
	              s->as.n, sh->batch);
}

/*
 * Without memory the states forget it at once. Too early is better than never: then a count exceeds, and does not lack any.
 * An occurrence that is kept in sh->in_batch was noted in the batch before.
 */
static void keep(struct sharing *sh, struct buf *all, const struct settled *s)
{
	buf_put(all, s, sizeof(*s));
	if (all->failed) {
		all->failed = false;
		if (is_noted(sh, s)) {
			if (all == &sh->settled) {
				note_in_batch(sh, s);
			}
			acknowledge(sh, s);
		}
	}
}

/* Gives `move` each occurrence of `all` whose source was sent the last batch, and leaves the others in `all`. */
static void move_sent(struct sharing *sh, struct buf *all, void (*move)(struct sharing *sh, const struct settled *s))
{
	struct buf before = *all;
	struct settled s;

	*all = (struct buf){ 0 };
	for (size_t at = 0; at < before.len; at += sizeof(s)) {
		memcpy(&s, before.data + at, sizeof(s));
		if (!is_noted(sh, &s)) {
			continue;
		}
		if (share_has_sent_batch(sh->share, s.as.receipt.source)) {
			move(sh, &s);
		} else {
			keep(sh, all, &s);
		}
	}
	buf_free(&before);
}

static void put_in_batch(struct sharing *sh, const struct settled *s)
{
	note_in_batch(sh, s);
	keep(sh, &sh->in_batch, s);
}

void sharing_add_to_batch(struct sharing *sh)
{
	move_sent(sh, &sh->settled, put_in_batch);
}

void sharing_begin_batch(struct sharing *sh)
{
	move_sent(sh, &sh->in_batch, acknowledge);
	sh->batch = share_begin_batch(sh->share);
	sharing_add_to_batch(sh);
}

static bool add_to_last(const struct buf *settled, const struct settled *s)
{
	struct settled last;

	if (settled->len == 0) {
		return false;
	}
	memcpy(&last, settled->data + settled->len - sizeof(last), sizeof(last));
	if (last.sink != s->sink || last.as.handle != s->as.handle || last.as.as != s->as.as ||
	    last.as.receipt.source != s->as.receipt.source || last.as.n > UINT32_MAX - s->as.n) {
		return false;
	}
	last.as.n += s->as.n;
	memcpy(settled->data + settled->len - sizeof(last), &last, sizeof(last));
	return true;
}

static void note_settled(struct sharing *sh, size_t sink, const struct pipeline_settled *as)
{
	const struct settled s = { sink, *as };

	if (sh->is_last && is_noted(sh, &s) && share_has_sent_batch(sh->share, as->receipt.source)) {
		/* When the sinks end, the states are written once more. */
		note_in_batch(sh, &s);
	} else if (!add_to_last(&sh->settled, &s)) {
		keep(sh, &sh->settled, &s);
	}
}

void sharing_settled(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *s)
{
	static const unsigned ends[] = {
		[SETTLED_WRITTEN] = FRAME_FORWARDED,
		[SETTLED_SPOOLED] = FRAME_FORWARDED,
		[SETTLED_RATE_LIMITED] = FRAME_RATE_LIMITED,
	};
	struct hub *hub = ctx;

	for (size_t i = 0; i < hub->sinks.len; i++) {
		const evrec_watch *watch = hub->sinks.items[i];

		if (watch->pipeline == pipeline) {
			hub->sharing->unsettled -= s->n;
			if (is_left_to_worker(hub->sharing, s)) {
				hub->sharing->left[watch->number - 1] += s->n;
				return;
			}
			tell_for_source(hub, s);
			share_settled(hub->sharing->share, s->receipt.source, s->receipt.node, watch->number - 1,
			              s->as == SETTLED_DROPPED ? (unsigned)s->cause : ends[s->as], s->n);
			note_settled(hub->sharing, watch->number - 1, s);
			return;
		}
	}
}

/* ---- what else a share calls ---- */

static void on_flush(void *ctx)
{
	struct hub *hub = ctx;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_release(hub->sinks.items[i]->pipeline);
		pipeline_write_state(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
}

static void on_connected(void *ctx, uint64_t source, uint64_t process, uint64_t batch)
{
	const struct origin from = { .process = process, .connection = source, .batch = batch };
	struct hub *hub = ctx;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_reconnect(hub->sinks.items[i]->pipeline, &from);
	}
	hub_unlock(hub);
}

static void on_left(void *ctx, uint64_t source)
{
	struct hub *hub = ctx;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_leave(hub->sinks.items[i]->pipeline, source);
		/* If this process is killed, the last state still expects them. */
		pipeline_write_state(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
}

static void on_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	struct hub *hub = ctx;

	(void)sink;
	hub_lock(hub);
	if (end == FRAME_RATE_LIMITED) {
		hub_tell_on_drop(hub, event, evrec_why_name(EVREC_RATE_LIMITED));
	} else {
		hub_tell_drop(hub, event, evrec_cause_name((enum evrec_cause)end), n);
	}
	hub_unlock(hub);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct hub *hub = ctx;

	hub_lock(hub);
	hub_tell_error(hub, message, name, NULL);
	hub_unlock(hub);
}

/* The static string of an error's kind; an owner sends only kinds of sinks' errors. */
static const char *kind_of(evrec_str problem)
{
	static const char *const kinds[] = { "transport", "throttled", "unauthorized", "forbidden",
		                             "not_found", "conflict",  "rejected",     "unfit",
		                             "spool",     "state",     "memory",       "warning",
		                             "store",     "notes",     "resume",       "thread" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_eq(problem, str_from(kinds[i]))) {
			return kinds[i];
		}
	}
	return "server";
}

static void on_trouble(void *ctx, evrec_str text, evrec_str problem, evrec_str sink_name)
{
	struct hub *hub = ctx;
	char message[sizeof(((struct outbox_message *)0)->message)], sink[EVREC_SINK_NAME_SIZE];

	utf8_copy(message, sizeof(message), text);
	utf8_copy(sink, sizeof(sink), sink_name);
	hub_lock(hub);
	hub_tell_error(hub, message, kind_of(problem), sink);
	hub_unlock(hub);
}

void sharing_report(const struct hub *hub, const char *message, const char *name, const char *sink)
{
	struct sharing *sh = hub->sharing;

	if (sh != NULL && sh->share != NULL && sink != NULL && strcmp(name, "thread") != 0) {
		share_report(sh->share, str_from(name), str_from(sink), str_from(message));
	}
}

static void on_explain(void *ctx, const evrec_reference *object, struct buf *out)
{
	explanation_write(ctx, object, out);
}

const struct share_ops sharing_ops = {
	.record = on_record,
	.flush = on_flush,
	.begin = sharing_begin_owner,
	.connected = on_connected,
	.left = on_left,
	.lost = on_lost,
	.error = on_error,
	.trouble = on_trouble,
	.save_state = sharing_save_state,
	.load_state = sharing_load_state,
	.explain = on_explain,
};
