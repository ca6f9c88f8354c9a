#include "sink/trace.h"

#include "base/clock.h"
#include "base/lru.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/trace_item.h"
#include "sink/waker.h"
#include "spool/private_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define BATCH 256
#define MIN_BYTES 4096
#define END_BYTES 256 /* kept free for a gap and the last line */

struct trace_sink {
	evrec_sink base;
	char *path;
	uint64_t max_bytes;
	struct trace_header header;
	atomic_bool over;
	/* Events that were lost since the last line of a gap. */
	_Atomic uint64_t lost;
	_Atomic int64_t lost_from, lost_to;
};

struct trace_file {
	struct protocol base;
	struct trace_sink *sink; /* retained */
	int fd;                  /* -1: not open */
	struct waker waker;
	uint64_t len;    /* of the file */
	uint64_t gap;    /* events of the gap in `lines` */
	struct lru *ids; /* identity of an event -> nothing; its place is the id */
	struct buf lines, identity;
};

static struct trace_sink *sink_of(evrec_sink *sink)
{
	return (struct trace_sink *)sink;
}

/* ---- the file ---- */

static bool is_trace(int fd)
{
	char start[sizeof(TRACE_START) - 1];
	const ssize_t n = pread(fd, start, sizeof(start), 0);

	return n == 0 || (n == (ssize_t)sizeof(start) && memcmp(start, TRACE_START, sizeof(start)) == 0);
}

/* An earlier trace of that name is replaced, but no other file, and none that another process writes. */
static bool claim(int fd, const char *path, evrec_error *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		private_file_set_error(err, path, ": another process writes to it");
	} else if (!is_trace(fd)) {
		private_file_set_error(err, path, ": holds something that is no trace");
	} else if (ftruncate(fd, 0) != 0) {
		private_file_set_errno(err, path, errno);
	} else {
		private_file_protect(fd);
		return true;
	}
	return false;
}

/* Appends the lines, all or none of them. 0 or an errno. */
static int append(struct trace_file *file)
{
	size_t at = 0;

	while (at < file->lines.len) {
		const ssize_t n =
			pwrite(file->fd, file->lines.data + at, file->lines.len - at, (off_t)(file->len + at));

		if (n > 0) {
			at += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			const int error = n == 0 ? ENOSPC : errno;

			(void)ftruncate(file->fd, (off_t)file->len);
			return error;
		}
	}
	file->len += at;
	return 0;
}

static bool open_trace(struct trace_file *file, evrec_error *err)
{
	int error;

	if (file->fd >= 0) {
		return true;
	}
	file->fd = private_file_open(file->sink->path, err);
	if (file->fd < 0) {
		return false;
	}
	buf_clear(&file->lines);
	trace_put_header(&file->lines, &file->sink->header);
	if (claim(file->fd, file->sink->path, err)) {
		error = file->lines.failed ? ENOMEM : append(file);
		if (error == 0) {
			return true;
		}
		private_file_set_errno(err, file->sink->path, error);
	}
	(void)close(file->fd);
	file->fd = -1;
	return false;
}

/* ---- lines ---- */

static void put_gap(struct trace_file *file)
{
	file->gap = atomic_exchange(&file->sink->lost, 0);
	if (file->gap != 0) {
		trace_put_gap(&file->lines, file->gap, atomic_load(&file->sink->lost_from),
		              atomic_load(&file->sink->lost_to));
	}
}

/* False: no memory. Then the event's id is not used. */
static bool put_line(struct trace_file *file, const struct trace_item *item)
{
	evrec_fields event;
	const size_t before = file->lines.len;
	bool fresh = false;
	struct key key;
	void *value;

	evrec_packed_read(trace_packed(item), &event);
	buf_clear(&file->identity);
	trace_put_identity(&file->identity, &event, &item->keys);
	if (file->identity.failed) {
		return false;
	}
	key = key_of(buf_str(&file->identity), (evrec_str){ NULL, 0 });
	value = lru_put(file->ids, &key, &fresh);
	if (value == NULL) {
		return false;
	}
	trace_put_event(&file->lines, lru_place(lru_handle(value)) + 1, item->now, item->at, fresh ? &event : NULL,
	                &item->keys);
	if (file->lines.failed) {
		file->lines.failed = false;
		file->lines.len = before;
		lru_remove(file->ids, value);
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

/* The events of a write that failed are a gap, and their ids are defined anew. */
static void lose(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n, int error)
{
	evrec_error err;

	lru_free(file->ids);
	file->ids = NULL;
	atomic_fetch_add(&file->sink->lost, file->gap);
	file->gap = 0;
	for (size_t i = 0; i < n; i++) {
		trace_sink_lost(&file->sink->base, ((const struct trace_item *)entries[i]->item)->now);
	}
	private_file_set_errno(&err, file->sink->path, error);
	drop_all(s, entries, n, err.message, EVREC_CAUSE_CLOSED);
}

static void tell_full(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n)
{
	evrec_error err;

	atomic_store(&file->sink->over, true);
	(void)error_set(&err, EVREC_ESYSTEM, "%.160s: has max_bytes, and takes no more events", file->sink->path);
	drop_all(s, entries, n, err.message, EVREC_CAUSE_CLOSED);
}

static const struct lru_type id_type = { .value_size = 8 };

/* Makes lines of the entries as far as they fit; returns how many. */
static size_t put_lines(struct trace_file *file, struct entry *const *entries, size_t n, bool *full)
{
	size_t i;

	buf_clear(&file->lines);
	put_gap(file);
	for (i = 0; i < n; i++) {
		const struct trace_item *item = entries[i]->item;
		const size_t before = file->lines.len;

		if (!put_line(file, item)) {
			trace_sink_lost(&file->sink->base, item->now);
		} else if (file->len + file->lines.len + END_BYTES > file->sink->max_bytes) {
			file->lines.len = before;
			trace_put_end(&file->lines, "max_bytes", item->now);
			*full = true;
			break;
		}
	}
	return i;
}

static void send_lines(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n)
{
	struct outcome written = { .verdict = VERDICT_WRITTEN };
	bool full = false;
	size_t fitting;
	int error;

	if (file->ids == NULL) {
		file->ids = lru_new(&id_type, TRACE_IDS);
	}
	if (file->ids == NULL) {
		file->gap = 0;
		lose(file, s, entries, n, ENOMEM);
		return;
	}
	fitting = put_lines(file, entries, n, &full);
	error = file->lines.failed ? ENOMEM : append(file);
	if (error != 0) {
		lose(file, s, entries, n, error);
		return;
	}
	for (size_t i = 0; i < fitting; i++) {
		sender_answered(s, entries[i], &written);
	}
	if (full) {
		tell_full(file, s, entries + fitting, n - fitting);
	}
}

static void trace_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct trace_file *file = (struct trace_file *)p;
	evrec_error err;

	if (atomic_load(&file->sink->over)) {
		tell_full(file, s, entries, n);
	} else if (!open_trace(file, &err)) {
		atomic_store(&file->sink->over, true);
		drop_all(s, entries, n, err.message, EVREC_CAUSE_CLOSED);
	} else {
		send_lines(file, s, entries, n);
	}
	sender_request_ended(s, REQUEST_SUCCEEDED, 0);
}

static void trace_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	(void)s;
	if (timeout > 0) {
		(void)waker_wait(&((struct trace_file *)p)->waker, -1, 0, timeout);
	}
}

static void trace_wake(struct protocol *p)
{
	waker_wake(&((struct trace_file *)p)->waker);
}

static void trace_free(struct protocol *p)
{
	struct trace_file *file = (struct trace_file *)p;

	if (file->fd >= 0) {
		buf_clear(&file->lines);
		put_gap(file);
		if (file->lines.len != 0 && !file->lines.failed) {
			(void)append(file);
		}
		(void)close(file->fd);
	}
	waker_close(&file->waker);
	lru_free(file->ids);
	buf_free(&file->lines);
	buf_free(&file->identity);
	evrec_sink_release(&file->sink->base);
	mem_free(file);
}

static const struct protocol_ops trace_protocol_ops = {
	.does_io = true,
	.send = trace_send,
	.step = trace_step,
	.wake = trace_wake,
	.free = trace_free,
};

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct trace_file *file = mem_zalloc(sizeof(*file));

	if (file == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	/* One request at a time, so that lines stay in the order of the events. */
	file->base = (struct protocol){ .ops = &trace_protocol_ops, .max_batch = BATCH, .max_in_flight = 1 };
	file->sink = sink_of(evrec_sink_retain(sink));
	file->fd = -1;
	waker_open(&file->waker);
	return &file->base;
}

/* ---- the sink ---- */

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	const struct trace_sink *trace = (const struct trace_sink *)sink;

	fingerprint_add(f, "path", str_from(trace->path));
	fingerprint_add_number(f, "max_bytes", (int64_t)trace->max_bytes);
}

static void free_kind(evrec_sink *sink)
{
	mem_free(sink_of(sink)->path);
}

evrec_sink *trace_sink_new(evrec_str path, uint64_t max_bytes, const struct trace_header *header, evrec_error *err)
{
	evrec_sink_options options;
	struct trace_sink *sink;

	if (path.len == 0 || memchr(path.data, '\0', path.len) != NULL) {
		error_set(err, EVREC_EINVALID, "path: must be the name of a file");
		return NULL;
	}
	if (max_bytes < MIN_BYTES || max_bytes > INT64_MAX) {
		error_set(err, EVREC_EINVALID, "max_bytes: must be at least %d", MIN_BYTES);
		return NULL;
	}
	evrec_sink_options_init(&options);
	options.limits.max_age = 0;
	sink = sink_new(sizeof(*sink), &options, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "trace";
	sink->base.traces = true;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.open = open_protocol;
	sink->base.free = free_kind;
	sink->max_bytes = max_bytes;
	sink->header = *header;
	sink->path = str_dup(path);
	if (sink->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	return &sink->base;
}

bool trace_sink_is_over(const evrec_sink *sink)
{
	return atomic_load_explicit(&((const struct trace_sink *)sink)->over, memory_order_relaxed);
}

void trace_sink_lost(evrec_sink *sink, int64_t now)
{
	struct trace_sink *trace = sink_of(sink);

	if (atomic_fetch_add(&trace->lost, 1) == 0) {
		atomic_store(&trace->lost_from, now);
	}
	atomic_store(&trace->lost_to, now);
}
