#include "store/store.h"

#include "base/clock.h"
#include "event/event.h"
#include "event/notes.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/sink.h"
#include "sink/waker.h"
#include "spool/sqlite.h"

#include <stdio.h>

#define BATCH 256                       /* events in one transaction */
#define EXPIRY_BATCHES 16               /* looks for events to delete after so many batches, */
#define EXPIRY_TIME (60 * EVREC_SECOND) /* and after this time */
#define NOTES_AT_ONCE 2000              /* in one transaction */
#define NOTES_TIME EVREC_SECOND /* the longest time until notes are written; each batch of events writes them, too */
#define NOTES_SHARE 4           /* notes that wait take at most this part of the sink's bytes, beside these */
#define KEEP_BYTES_MIN (1U << 20)

struct store_protocol {
	struct protocol base;
	struct store *store;
	enum evrec_api api;
	int64_t keep;
	size_t keep_bytes;
	struct waker waker;
	struct buf json;     /* of one event */
	unsigned batches;    /* since the last look for events to delete */
	int64_t due;         /* the next such look; monotonic */
	struct notes *notes; /* NULL: none are kept */
	int64_t notes_due;   /* when the next notes are to be written; monotonic */
};

static struct store_protocol *store_of(struct protocol *t)
{
	return (struct store_protocol *)t;
}

static bool put(struct store_protocol *p, const void *item, evrec_error *err)
{
	const evrec_fields fields = write_fields(item, BODY_CREATE);

	buf_clear(&p->json);
	json_event(&p->json, &fields, p->api);
	if (p->json.failed) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return store_put(p->store, &fields, buf_str(&p->json), err);
}

static bool put_notes(struct store_protocol *p, evrec_error *err)
{
	struct note note;
	bool ok = true;

	for (size_t n = 0; ok && n < NOTES_AT_ONCE && notes_next(p->notes, &note); n++) {
		ok = store_put_note(p->store, &note, err);
	}
	return ok;
}

/* One transaction, also of notes that wait. */
static bool write_all(struct store_protocol *p, struct entry *const *entries, size_t n, evrec_error *err)
{
	bool ok = store_begin(p->store, err);

	if (!ok) {
		return false;
	}
	for (size_t i = 0; ok && i < n; i++) {
		ok = put(p, entries[i]->item, err);
	}
	ok = ok && (p->notes == NULL || put_notes(p, err)) && store_commit(p->store, err);
	if (!ok) {
		store_rollback(p->store);
	}
	if (p->notes != NULL) {
		if (ok) {
			notes_written(p->notes);
		} else {
			notes_rewind(p->notes);
		}
	}
	return ok;
}

static bool has_notes(const struct store_protocol *p)
{
	return p->notes != NULL && notes_wait(p->notes);
}

/* Writes some notes, if they are due. Reports no failure: the notes wait, and the next write of an event reports it. */
static void write_notes(struct store_protocol *p, int64_t now)
{
	evrec_error err;

	if (!has_notes(p) || now < p->notes_due) {
		return;
	}
	if (!write_all(p, NULL, 0, &err)) {
		store_close(p->store);
		p->notes_due = time_after(now, NOTES_TIME);
	} else if (!has_notes(p)) {
		p->notes_due = time_after(now, NOTES_TIME);
	}
}

/* Deletes some events, if it is due. Reports no failure: the next write fails likewise, and reports it. */
static void expire(struct store_protocol *p, struct sender *s)
{
	const evrec_clock *clock = sender_clock(s);
	const int64_t now = clock_monotonic(clock);
	int64_t before;
	bool more;

	if (!store_is_open(p->store) || (now < p->due && p->batches < EXPIRY_BATCHES)) {
		return;
	}
	if (__builtin_sub_overflow(evrec_clock_now(clock), p->keep, &before)) {
		before = INT64_MIN;
	}
	if (!store_expire(p->store, before, p->keep_bytes, &more, NULL)) {
		more = false;
	}
	p->batches = 0;
	p->due = more ? now : time_after(now, EXPIRY_TIME);
}

static void store_send(struct protocol *t, struct sender *s, struct entry *const *entries, size_t n)
{
	struct store_protocol *p = store_of(t);
	struct outcome outcome = { .verdict = VERDICT_WRITTEN };
	evrec_error err;
	const bool ok = write_all(p, entries, n, &err);

	if (!ok) {
		outcome.verdict = VERDICT_RETRY;
		outcome.unanswered = true;
		outcome.problem = "store";
		(void)snprintf(outcome.message, sizeof(outcome.message), "%s", err.message);
		/* The next try opens it again: a damaged file may have been replaced by then. */
		store_close(p->store);
	}
	for (size_t i = 0; i < n; i++) {
		sender_answered(s, entries[i], &outcome);
	}
	sender_request_ended(s, ok ? REQUEST_SUCCEEDED : REQUEST_UNANSWERED, 0);
	p->batches++;
	expire(p, s);
}

/* The wait of a step: until events are to be deleted, at most. */
static int64_t waiting_time(const struct store_protocol *p, struct sender *s, int64_t timeout)
{
	const int64_t now = clock_monotonic(sender_clock(s));
	const int64_t left = time_since(p->due, now);
	const int64_t notes_left = has_notes(p) ? time_since(p->notes_due, now) : INT64_MAX;

	if (store_is_open(p->store) && left < timeout) {
		timeout = left;
	}
	if (notes_left < timeout) {
		timeout = notes_left;
	}
	return timeout;
}

static void store_step(struct protocol *t, struct sender *s, int64_t timeout)
{
	struct store_protocol *p = store_of(t);

	write_notes(p, clock_monotonic(sender_clock(s)));
	expire(p, s);
	timeout = waiting_time(p, s, timeout);
	if (timeout > 0) {
		(void)waker_wait(&p->waker, -1, 0, timeout);
	}
}

static void store_wake(struct protocol *t)
{
	waker_wake(&store_of(t)->waker);
}

static struct notes *store_notes(struct protocol *t)
{
	return store_of(t)->notes;
}

static void store_finish(struct protocol *t, struct sender *s)
{
	struct store_protocol *p = store_of(t);
	evrec_error err;

	while (has_notes(p)) {
		if (!write_all(p, NULL, 0, &err)) {
			notes_give_up(p->notes);
			outbox_report(sender_outbox(s), "notes",
			              "the last notes of occurrences or suppressions could not be written; notes_lost "
			              "counts them");
			/* Reported last, as flush and shutdown return the last error. */
			outbox_report(sender_outbox(s), "store", err.message);
			return;
		}
	}
}

static void store_protocol_free(struct protocol *t)
{
	struct store_protocol *p = store_of(t);

	waker_close(&p->waker);
	store_free(p->store);
	notes_free(p->notes);
	buf_free(&p->json);
	mem_free(p);
}

static const struct protocol_ops store_ops = {
	.does_io = true,
	.send = store_send,
	.step = store_step,
	.wake = store_wake,
	.notes = store_notes,
	.finish = store_finish,
	.free = store_protocol_free,
};

/* ---- the sink ---- */

struct store_sink {
	evrec_sink base;
	char *path;
	int64_t keep;
	size_t keep_bytes;
	bool occurrences, suppressions;
};

/* NULL: no memory. */
static struct notes *new_notes(const struct store_sink *sink)
{
	const size_t bytes = outbox_limit_of_bytes(&sink->base.options.limits) / NOTES_SHARE;

	return notes_new(sink->occurrences, sink->suppressions, bytes > NOTES_MIN ? bytes : NOTES_MIN);
}

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	const struct store_sink *configured = (const struct store_sink *)sink;
	const bool notes = configured->occurrences || configured->suppressions;
	struct store_protocol *p = mem_zalloc(sizeof(*p));

	if (p != NULL) {
		p->store = store_new(str_from(configured->path));
		p->notes = notes ? new_notes(configured) : NULL;
	}
	if (p == NULL || p->store == NULL || (notes && p->notes == NULL)) {
		if (p != NULL) {
			store_free(p->store);
			notes_free(p->notes);
		}
		mem_free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	p->base = (struct protocol){ .ops = &store_ops, .max_batch = BATCH, .max_in_flight = 1 };
	p->api = sink_api(&sink->options);
	p->keep = configured->keep;
	p->keep_bytes = configured->keep_bytes;
	p->due = p->notes_due = INT64_MIN;
	waker_open(&p->waker);
	return &p->base;
}

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	const struct store_sink *configured = (const struct store_sink *)sink;

	fingerprint_add(f, "path", str_from(configured->path));
	fingerprint_add_number(f, "keep", configured->keep);
	fingerprint_add_number(f, "keep_bytes", (int64_t)configured->keep_bytes);
	fingerprint_add_number(f, "occurrences", configured->occurrences);
	fingerprint_add_number(f, "suppressions", configured->suppressions);
}

static void free_kind(evrec_sink *sink)
{
	mem_free(((struct store_sink *)sink)->path);
}

static int check_options(const evrec_store_options *o, evrec_error *err)
{
	if (o->path.len == 0 || memchr(o->path.data, '\0', o->path.len) != NULL) {
		return error_set(err, EVREC_EINVALID, "path: must be the name of a file");
	}
	if (o->keep < EVREC_SECOND) {
		return error_set(err, EVREC_EINVALID, "keep: must be at least 1 s");
	}
	if (o->keep_bytes != 0 && o->keep_bytes < KEEP_BYTES_MIN) {
		return error_set(err, EVREC_EINVALID, "keep_bytes: must be at least %u", KEEP_BYTES_MIN);
	}
	return 0;
}

void evrec_store_options_init(evrec_store_options *options)
{
	*options = (evrec_store_options){ .keep = 7 * 86400 * EVREC_SECOND };
}

evrec_sink *evrec_sink_store(const evrec_store_options *store, const evrec_sink_options *options, evrec_error *err)
{
	struct store_sink *sink;

	/* The store is opened later, perhaps in a chroot. */
	if (check_options(store, err) != 0 || !sqlite_load(err)) {
		return NULL;
	}
	sink = sink_new(sizeof(*sink), options, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "store";
	sink->base.shows_states = true;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.open = open_protocol;
	sink->base.free = free_kind;
	sink->keep = store->keep;
	sink->keep_bytes = store->keep_bytes;
	sink->occurrences = store->occurrences;
	sink->suppressions = store->suppressions;
	sink->path = str_dup(store->path);
	if (sink->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	return &sink->base;
}
