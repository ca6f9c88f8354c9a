#include "sink/trace_inner.h"

#include "base/clock.h"
#include "base/lru.h"
#include "base/utf8.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/trace_file.h"
#include "sink/trace_item.h"
#include "sink/waker.h"
#include "spool/private_file.h"

#include <errno.h>
#include <stdio.h>

#define BATCH 256
#define END_BYTES 256 /* kept free for a gap and the last line */

struct trace_protocol {
	struct protocol base;
	struct trace_sink *sink; /* retained */
	struct trace_file file;
	struct waker waker;
	uint64_t gap; /* events of the gap in `lines` */
	int64_t last; /* the time of the last event in the file */
	bool finished;
	evrec_error why_over; /* once sink->over is true */
	struct lru *ids;      /* identity of an event -> nothing; its place is the id */
	struct buf lines, identity;
};

static bool open_trace(struct trace_protocol *t, evrec_error *err)
{
	if (trace_file_is_open(&t->file)) {
		return true;
	}
	buf_clear(&t->lines);
	trace_put_header(&t->lines, &t->sink->header);
	return trace_file_open(&t->file, &t->lines, err);
}

/* ---- lines ---- */

static void put_gap(struct trace_protocol *t)
{
	t->gap = atomic_exchange(&t->sink->lost, 0);
	if (t->gap != 0) {
		trace_put_gap(&t->lines, t->gap, atomic_load(&t->sink->lost_from), atomic_load(&t->sink->lost_to));
	}
}

/* False: no memory. Then the event's id is not used. */
static bool put_line(struct trace_protocol *t, const struct trace_item *item)
{
	evrec_fields event;
	const size_t before = t->lines.len;
	bool fresh = false;
	struct key key;
	void *value;

	evrec_packed_read(trace_packed(item), &event);
	buf_clear(&t->identity);
	trace_put_identity(&t->identity, &event, &item->keys);
	if (t->identity.failed) {
		return false;
	}
	key = key_of(buf_str(&t->identity), (evrec_str){ NULL, 0 });
	value = lru_put(t->ids, &key, &fresh);
	if (value == NULL) {
		return false;
	}
	trace_put_event(&t->lines, lru_place(lru_handle(value)) + 1, item->now, item->at, fresh ? &event : NULL,
	                &item->keys);
	if (t->lines.failed) {
		t->lines.failed = false;
		t->lines.len = before;
		lru_remove(t->ids, value);
		return false;
	}
	return true;
}

/* ---- sending ---- */

static void drop(struct sender *s, struct entry *entry, const char *message, enum evrec_cause cause)
{
	struct outcome outcome = { .verdict = VERDICT_DROP, .cause = cause, .problem = "trace", .once = true };

	(void)snprintf(outcome.message, sizeof(outcome.message), "%s", message);
	sender_answered(s, entry, &outcome);
}

static void drop_all(struct sender *s, struct entry *const *entries, size_t n, const char *message,
                     enum evrec_cause cause)
{
	for (size_t i = 0; i < n; i++) {
		drop(s, entries[i], message, cause);
	}
}

/* Counts the events of a failed write as a gap; their ids will be defined again. */
static void lose(struct trace_protocol *t, struct sender *s, struct entry *const *entries, size_t n, int error)
{
	evrec_error err;

	lru_free(t->ids);
	t->ids = NULL;
	atomic_fetch_add(&t->sink->lost, t->gap);
	t->gap = 0;
	for (size_t i = 0; i < n; i++) {
		trace_sink_lost(&t->sink->base, ((const struct trace_item *)entries[i]->item)->now);
	}
	private_file_set_errno(&err, t->sink->path, error);
	drop_all(s, entries, n, err.message, EVREC_CAUSE_CLOSED);
}

/* The trace takes no more events, as t->why_over says. */
static void end_trace(struct trace_protocol *t, struct sender *s, struct entry *const *entries, size_t n)
{
	atomic_store(&t->sink->over, true);
	drop_all(s, entries, n, t->why_over.message, EVREC_CAUSE_CLOSED);
}

static const struct lru_type id_type = { .value_size = 8 };

/* Entries whose lines are in t->lines. */
struct batch {
	struct entry *entries[BATCH];
	size_t n;
};

/* Makes lines of the entries as far as they fit, and drops entries without memory. Returns how many it has handled. */
static size_t put_lines(struct trace_protocol *t, struct sender *s, struct entry *const *entries, size_t n,
                        struct batch *batch)
{
	size_t i;

	buf_clear(&t->lines);
	put_gap(t);
	for (i = 0; i < n; i++) {
		const struct trace_item *item = entries[i]->item;
		const size_t before = t->lines.len;

		if (!put_line(t, item)) {
			trace_sink_lost(&t->sink->base, item->now);
			drop(s, entries[i], "no memory", EVREC_CAUSE_MEMORY);
		} else if (t->file.len + t->lines.len + END_BYTES > t->sink->max_bytes) {
			t->lines.len = before;
			trace_put_end(&t->lines, "max_bytes", item->now);
			break;
		} else {
			batch->entries[batch->n++] = entries[i];
		}
	}
	return i;
}

static void send_lines(struct trace_protocol *t, struct sender *s, struct entry *const *entries, size_t n)
{
	struct outcome written = { .verdict = VERDICT_WRITTEN };
	struct batch batch = { .n = 0 };
	size_t done;
	int error;

	if (t->ids == NULL) {
		t->ids = lru_new(&id_type, TRACE_IDS);
	}
	if (t->ids == NULL) {
		t->gap = 0;
		lose(t, s, entries, n, ENOMEM);
		return;
	}
	done = put_lines(t, s, entries, n, &batch);
	error = trace_file_append(&t->file, &t->lines);
	if (error != 0) {
		lose(t, s, batch.entries, batch.n, error);
		lose(t, s, entries + done, n - done, error);
		return;
	}
	for (size_t i = 0; i < batch.n; i++) {
		t->last = ((const struct trace_item *)batch.entries[i]->item)->now;
		sender_answered(s, batch.entries[i], &written);
	}
	if (done < n) {
		(void)error_set(&t->why_over, EVREC_ESYSTEM, "%.*s: has max_bytes, and takes no more events",
		                path_shown(t->sink->path), t->sink->path);
		end_trace(t, s, entries + done, n - done);
	}
}

static void trace_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct trace_protocol *t = (struct trace_protocol *)p;

	if (atomic_load(&t->sink->over) || trace_file_is_removed(&t->file, &t->why_over) ||
	    !open_trace(t, &t->why_over)) {
		end_trace(t, s, entries, n);
	} else {
		send_lines(t, s, entries, n);
	}
	sender_request_ended(s, REQUEST_SUCCEEDED, 0);
}

static void trace_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	(void)s;
	if (timeout > 0) {
		(void)waker_wait(&((struct trace_protocol *)p)->waker, -1, 0, timeout);
	}
}

static void trace_wake(struct protocol *p)
{
	waker_wake(&((struct trace_protocol *)p)->waker);
}

/* The events that still wait happened after the last one that was written. */
static void lose_waiting(struct trace_protocol *t, struct sender *s)
{
	struct trace_sink *sink = t->sink;
	struct outbox_stats stats;

	outbox_get_stats(sender_outbox(s), &stats);
	if (stats.pending != 0) {
		const int64_t now = evrec_clock_now(sender_clock(s));

		if (atomic_fetch_add(&sink->lost, stats.pending) == 0) {
			atomic_store(&sink->lost_from, t->last != 0 ? t->last : now);
		}
		atomic_store(&sink->lost_to, now);
	}
}

/* False: the gap stays the sink's. */
static bool write_gap(struct trace_protocol *t, evrec_error *err)
{
	int error;

	if (!open_trace(t, err) || !trace_file_come_back(&t->file, err)) {
		return false;
	}
	buf_clear(&t->lines);
	put_gap(t);
	error = trace_file_append(&t->file, &t->lines);
	if (error != 0) {
		atomic_fetch_add(&t->sink->lost, t->gap);
		private_file_set_errno(err, t->sink->path, error);
		trace_file_leave(&t->file);
	}
	return error == 0;
}

/*
 * Writes the last gap, also if it is all that the trace has. Then the path is free for the next trace, although the
 * broadcaster is not freed yet.
 */
static void trace_finish(struct protocol *p, struct sender *s)
{
	struct trace_protocol *t = (struct trace_protocol *)p;
	const bool over = atomic_load(&t->sink->over);
	char message[320];
	evrec_error err;

	if (!t->finished) {
		lose_waiting(t, s);
		t->finished = true;
	}
	if (!over && trace_file_is_removed(&t->file, &err)) {
		outbox_report(sender_outbox(s), "trace", err.message);
	} else if (!over && atomic_load(&t->sink->lost) != 0 && !write_gap(t, &err)) {
		(void)snprintf(message, sizeof(message), "%s (the last events and their gap are missing in the trace)",
		               err.message);
		outbox_report(sender_outbox(s), "trace", message);
		return;
	}
	if (!over) {
		(void)error_set(&t->why_over, EVREC_ECLOSED, "%.*s: has ended", path_shown(t->sink->path),
		                t->sink->path);
		atomic_store(&t->sink->over, true);
	}
	trace_file_close(&t->file);
}

static void trace_free(struct protocol *p)
{
	struct trace_protocol *t = (struct trace_protocol *)p;

	trace_file_close(&t->file);
	waker_close(&t->waker);
	lru_free(t->ids);
	buf_free(&t->lines);
	buf_free(&t->identity);
	evrec_sink_release(&t->sink->base);
	mem_free(t);
}

static const struct protocol_ops trace_protocol_ops = {
	.does_io = true,
	.send = trace_send,
	.step = trace_step,
	.wake = trace_wake,
	.finish = trace_finish,
	.free = trace_free,
};

struct protocol *trace_open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct trace_protocol *t = mem_zalloc(sizeof(*t));

	if (t == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	/* One request at a time, so that lines stay in the order of the events. */
	t->base = (struct protocol){ .ops = &trace_protocol_ops, .max_batch = BATCH, .max_in_flight = 1 };
	t->sink = trace_sink_of(evrec_sink_retain(sink));
	t->file = (struct trace_file){ .path = t->sink->path, .fd = -1 };
	waker_open(&t->waker);
	return &t->base;
}
