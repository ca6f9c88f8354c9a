#include "sink/trace_inner.h"

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
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 256
#define END_BYTES 256 /* kept free for a gap and the last line */

struct trace_file {
	struct protocol base;
	struct trace_sink *sink; /* retained */
	int fd;                  /* -1: not open */
	struct waker waker;
	uint64_t len; /* of the file */
	uint64_t gap; /* events of the gap in `lines` */
	int64_t last; /* the time of the last event in the file */
	bool finished;
	struct timespec left; /* when the file changed last before its lock was given up; 0: it has the lock */
	off_t left_size;      /* its size then: another trace may take less than a tick of `left` */
	evrec_error why_over; /* once sink->over is true */
	struct lru *ids;      /* identity of an event -> nothing; its place is the id */
	struct buf lines, identity;
};

/* ---- the file ---- */

static bool is_trace(int fd)
{
	char start[sizeof(TRACE_START) - 1];
	const ssize_t n = pread(fd, start, sizeof(start), 0);

	return n == 0 || (n == (ssize_t)sizeof(start) && memcmp(start, TRACE_START, sizeof(start)) == 0);
}

/* Checks that the file may be replaced: an earlier trace may, but no other file, and no trace that is still written. */
static bool claim(int fd, const char *path, evrec_error *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		private_file_set_error(err, path, ": another process, or another trace of this one, writes to it");
	} else if (!is_trace(fd)) {
		private_file_set_error(err, path, " is not a trace");
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

/* True, with *err: somebody has removed the file, so nobody would read what is written now. */
static bool was_removed(const struct trace_file *file, evrec_error *err)
{
	struct stat st;

	if (file->fd < 0 || fstat(file->fd, &st) != 0 || st.st_nlink != 0) {
		return false;
	}
	private_file_set_error(err, file->sink->path, " was removed");
	return true;
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

/* Counts the events of a failed write as a gap; their ids will be defined again. */
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

/* The trace takes no more events, as file->why_over says. */
static void end_trace(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n)
{
	atomic_store(&file->sink->over, true);
	drop_all(s, entries, n, file->why_over.message, EVREC_CAUSE_CLOSED);
}

static const struct lru_type id_type = { .value_size = 8 };

/* Entries whose lines are in file->lines. */
struct batch {
	struct entry *entries[BATCH];
	size_t n;
};

/* Makes lines of the entries as far as they fit, and drops entries without memory. Returns how many it has handled. */
static size_t put_lines(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n,
                        struct batch *batch)
{
	size_t i;

	buf_clear(&file->lines);
	put_gap(file);
	for (i = 0; i < n; i++) {
		const struct trace_item *item = entries[i]->item;
		const size_t before = file->lines.len;

		if (!put_line(file, item)) {
			trace_sink_lost(&file->sink->base, item->now);
			drop(s, entries[i], "no memory", EVREC_CAUSE_MEMORY);
		} else if (file->len + file->lines.len + END_BYTES > file->sink->max_bytes) {
			file->lines.len = before;
			trace_put_end(&file->lines, "max_bytes", item->now);
			break;
		} else {
			batch->entries[batch->n++] = entries[i];
		}
	}
	return i;
}

static void send_lines(struct trace_file *file, struct sender *s, struct entry *const *entries, size_t n)
{
	struct outcome written = { .verdict = VERDICT_WRITTEN };
	struct batch batch = { .n = 0 };
	size_t done;
	int error;

	if (file->ids == NULL) {
		file->ids = lru_new(&id_type, TRACE_IDS);
	}
	if (file->ids == NULL) {
		file->gap = 0;
		lose(file, s, entries, n, ENOMEM);
		return;
	}
	done = put_lines(file, s, entries, n, &batch);
	error = file->lines.failed ? ENOMEM : append(file);
	if (error != 0) {
		lose(file, s, batch.entries, batch.n, error);
		lose(file, s, entries + done, n - done, error);
		return;
	}
	for (size_t i = 0; i < batch.n; i++) {
		file->last = ((const struct trace_item *)batch.entries[i]->item)->now;
		sender_answered(s, batch.entries[i], &written);
	}
	if (done < n) {
		(void)error_set(&file->why_over, EVREC_ESYSTEM, "%.160s: has max_bytes, and takes no more events",
		                file->sink->path);
		end_trace(file, s, entries + done, n - done);
	}
}

static void trace_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct trace_file *file = (struct trace_file *)p;

	if (atomic_load(&file->sink->over) || was_removed(file, &file->why_over) ||
	    !open_trace(file, &file->why_over)) {
		end_trace(file, s, entries, n);
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

/* The events that still wait happened after the last one that was written. */
static void lose_waiting(struct trace_file *file, struct sender *s)
{
	struct trace_sink *sink = file->sink;
	struct outbox_stats stats;

	outbox_get_stats(sender_outbox(s), &stats);
	if (stats.pending != 0) {
		const int64_t now = evrec_clock_now(sender_clock(s));

		if (atomic_fetch_add(&sink->lost, stats.pending) == 0) {
			atomic_store(&sink->lost_from, file->last != 0 ? file->last : now);
		}
		atomic_store(&sink->lost_to, now);
	}
}

/* Gives up the lock of a file that lacks its last gap: the path is free for the next trace. */
static void leave(struct trace_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) == 0) {
		file->left = st.st_mtim;
		file->left_size = st.st_size;
		(void)flock(file->fd, LOCK_UN);
	}
}

/* False, with *err: another trace has replaced this one since `leave`. */
static bool come_back(struct trace_file *file, evrec_error *err)
{
	struct stat st;

	if (file->left.tv_sec == 0) {
		return true;
	}
	if (flock(file->fd, LOCK_EX | LOCK_NB) == 0 && fstat(file->fd, &st) == 0 && st.st_size == file->left_size &&
	    st.st_mtim.tv_sec == file->left.tv_sec && st.st_mtim.tv_nsec == file->left.tv_nsec) {
		return true;
	}
	(void)flock(file->fd, LOCK_UN);
	private_file_set_error(err, file->sink->path, ": another trace has replaced this one");
	return false;
}

/* False: the gap stays the sink's. */
static bool write_gap(struct trace_file *file, evrec_error *err)
{
	int error;

	if (!open_trace(file, err) || !come_back(file, err)) {
		return false;
	}
	buf_clear(&file->lines);
	put_gap(file);
	error = file->lines.failed ? ENOMEM : append(file);
	if (error != 0) {
		atomic_fetch_add(&file->sink->lost, file->gap);
		private_file_set_errno(err, file->sink->path, error);
		leave(file);
	}
	return error == 0;
}

static void close_trace(struct trace_file *file)
{
	if (file->fd >= 0) {
		/* Unlocks explicitly: a child that was forked meanwhile has the file open, and would keep the lock. */
		(void)flock(file->fd, LOCK_UN);
		(void)close(file->fd);
		file->fd = -1;
	}
}

/*
 * Writes the last gap, also if it is all that the trace has. Then the path is free for the next trace, although the
 * broadcaster is not freed yet.
 */
static void trace_finish(struct protocol *p, struct sender *s)
{
	struct trace_file *file = (struct trace_file *)p;
	const bool over = atomic_load(&file->sink->over);
	char message[320];
	evrec_error err;

	if (!file->finished) {
		lose_waiting(file, s);
		file->finished = true;
	}
	if (!over && was_removed(file, &err)) {
		outbox_report(sender_outbox(s), "trace", err.message);
	} else if (!over && atomic_load(&file->sink->lost) != 0 && !write_gap(file, &err)) {
		(void)snprintf(message, sizeof(message), "%s (the last events and their gap are missing in the trace)",
		               err.message);
		outbox_report(sender_outbox(s), "trace", message);
		return;
	}
	if (!over) {
		(void)error_set(&file->why_over, EVREC_ECLOSED, "%.160s: has ended", file->sink->path);
		atomic_store(&file->sink->over, true);
	}
	close_trace(file);
}

static void trace_free(struct protocol *p)
{
	struct trace_file *file = (struct trace_file *)p;

	close_trace(file);
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
	.finish = trace_finish,
	.free = trace_free,
};

struct protocol *trace_open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct trace_file *file = mem_zalloc(sizeof(*file));

	if (file == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	/* One request at a time, so that lines stay in the order of the events. */
	file->base = (struct protocol){ .ops = &trace_protocol_ops, .max_batch = BATCH, .max_in_flight = 1 };
	file->sink = trace_sink_of(evrec_sink_retain(sink));
	file->fd = -1;
	waker_open(&file->waker);
	return &file->base;
}
