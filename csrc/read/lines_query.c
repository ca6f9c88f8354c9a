/*
 * A query of a file reads it twice. The first time it notes for each event, by namespace and name, where its last line is,
 * and when the event occurred last by that line; the second time it reads the lines that are wanted, in their order. A pipe
 * is first copied to a temporary file without a name.
 */
#include "base/clock.h"
#include "base/lru.h"
#include "event/event.h"
#include "read/line_reader.h"
#include "read/lines.h"
#include "read/ranking.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define EVENTS_MAX ((size_t)1 << 30)
#define LINES_A_LOOK 256 /* lines between two looks at the clock */
#define COPY_BYTES 65536

enum phase { COPYING, SCANNING, TELLING };

/* The last line of an event. */
struct present {
	uint64_t offset;
	int64_t last;
	uint64_t wanted; /* 0: the filter does not match */
};

static const struct lru_type present_type = { .value_size = sizeof(struct present) };

struct lines_query {
	evrec_reader base;
	const struct filter *filter;
	char *path; /* for messages */
	enum phase phase;
	int fd;
	FILE *copy; /* of a pipe, or NULL */
	struct line_reader lines;
	struct lru *events; /* struct present by namespace and name */
	struct ranking ranking;
};

static struct lines_query *query_of(evrec_reader *reader)
{
	return (struct lines_query *)reader;
}

static int no_memory(evrec_error *err)
{
	return error_set(err, EVREC_ENOMEM, "no memory");
}

/* ---- the copy of a pipe ---- */

/* EVREC_READ_END: all of it is copied; EVREC_READ_WAIT; or an error. */
static int copy_pipe(struct lines_query *q, int64_t deadline, evrec_error *err)
{
	evrec_str line;
	int news;

	while ((news = line_reader_next(&q->lines, deadline, &line, err)) != LINE_NONE) {
		if (news < 0) {
			return lines_failed(q->path, news, err);
		}
		if (fwrite(line.data, 1, line.len, q->copy) != line.len ||
		    (news == LINE_FOUND && fputc('\n', q->copy) == EOF) || (news == LINE_END && fflush(q->copy) != 0)) {
			return lines_system_error("the copy of standard input or a pipe", err);
		}
		if (news == LINE_END) {
			line_reader_restart(&q->lines, fileno(q->copy), 0, false);
			return lseek(q->lines.fd, 0, SEEK_SET) == 0 ? EVREC_READ_END
			                                            : lines_system_error("the copy of a pipe", err);
		}
	}
	return EVREC_READ_WAIT;
}

/* ---- the index ---- */

static int note(struct lines_query *q, const evrec_fields *event, evrec_error *err)
{
	const bool wanted = filter_matches(q->filter, event);
	struct buf text = { 0 };
	struct present *present;
	struct key key;
	bool fresh;

	/* The length makes the key of each pair of namespace and name unique. */
	buf_printf(&text, "%zu/", event->ns.len);
	buf_put_str(&text, event->ns);
	buf_put_str(&text, event->name);
	key = key_of(buf_str(&text), (evrec_str){ NULL, 0 });
	present = text.failed ? NULL : wanted ? lru_put(q->events, &key, &fresh) : lru_find(q->events, &key);
	if (present != NULL) {
		*present = (struct present){ q->lines.line_offset, event_last(event), wanted };
	}
	buf_free(&text);
	return present != NULL || !wanted ? 0 : no_memory(err);
}

static int scan_line(struct lines_query *q, evrec_str line, evrec_error *err)
{
	evrec_event *event;
	int code = lines_read_event(q->path, line, q->lines.number, &event, err);

	if (event != NULL) {
		code = note(q, evrec_event_fields(event), err);
		evrec_event_release(event);
	}
	return code;
}

static int rank(struct lines_query *q, evrec_error *err)
{
	for (size_t i = 0; i < lru_len(q->events); i++) {
		const struct present *present = lru_in_place(q->events, (uint32_t)i);

		if (present->wanted && !ranking_put(&q->ranking, present->last, present->offset, NULL, 0)) {
			return no_memory(err);
		}
	}
	ranking_sort(&q->ranking);
	lru_free(q->events);
	q->events = NULL;
	return EVREC_READ_END;
}

/* EVREC_READ_END: the index is made; EVREC_READ_WAIT; or an error. */
static int scan(struct lines_query *q, int64_t deadline, evrec_error *err)
{
	evrec_str line;
	int news, code;

	for (unsigned i = 1;; i++) {
		news = line_reader_next(&q->lines, INT64_MAX, &line, err);
		if (news < 0) {
			return lines_failed(q->path, news, err);
		}
		if (news == LINE_END) {
			/* A last line without a newline may be complete, if others wrote it, or not be written whole yet. */
			q->lines.number++;
			code = scan_line(q, line, err);
			return code != 0 ? code : rank(q, err);
		}
		code = news == LINE_FOUND ? scan_line(q, line, err) : 0;
		if (code != 0) {
			return code;
		}
		if (i % LINES_A_LOOK == 0 && clock_monotonic(evrec_clock_real()) >= deadline) {
			return EVREC_READ_WAIT;
		}
	}
}

/* ---- telling ---- */

static int tell(struct lines_query *q, evrec_found *found, evrec_error *err)
{
	const struct ranked *next = ranking_next(&q->ranking);
	enum json_fault fault = JSON_SOUND;
	evrec_event *event;
	int code;

	if (next == NULL) {
		return EVREC_READ_END;
	}
	buf_clear(&q->base.json);
	code = line_read_at(q->lines.fd, next->tie, &q->base.json, err);
	event = code == 0 ? event_from_json_or_fault(buf_str(&q->base.json), &fault) : NULL;
	if (fault == JSON_NO_MEMORY) {
		return no_memory(err);
	}
	if (code == 0 && event == NULL) {
		code = error_set(err, EVREC_ESYSTEM, "the file was changed while it was read");
	}
	return code != 0 ? lines_failed(q->path, code, err) : reader_show(&q->base, event, false, found, err);
}

/* EVREC_READ_END: the order is known; EVREC_READ_WAIT; or an error. */
static int query_begin(evrec_reader *reader, int64_t deadline, evrec_error *err)
{
	struct lines_query *q = query_of(reader);
	int result = EVREC_READ_END;

	while (q->phase != TELLING && result == EVREC_READ_END) {
		result = q->phase == COPYING ? copy_pipe(q, deadline, err) : scan(q, deadline, err);
		q->phase += result == EVREC_READ_END;
	}
	return result;
}

static int query_next(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err)
{
	const int result = query_begin(reader, deadline, err);

	return result == EVREC_READ_END ? tell(query_of(reader), found, err) : result;
}

static void query_free(evrec_reader *reader)
{
	struct lines_query *q = query_of(reader);

	lru_free(q->events);
	ranking_free(&q->ranking);
	line_reader_free(&q->lines);
	if (q->copy != NULL) {
		(void)fclose(q->copy);
	}
	lines_close(q->fd);
	mem_free(q->path);
	mem_free(q);
}

static const struct reader_ops ops = { .begin = query_begin, .next = query_next, .free = query_free };

evrec_reader *lines_query_open(const char *path, const struct filter *filter, evrec_error *err)
{
	struct lines_query *q = mem_zalloc(sizeof(*q));
	struct stat st;
	off_t at;

	if (q == NULL) {
		no_memory(err);
		return NULL;
	}
	q->base.ops = &ops;
	q->filter = filter;
	q->ranking.descending = filter->query.order == EVREC_NEWEST;
	q->ranking.limit = filter->query.limit;
	q->fd = lines_open(path, &st, err);
	if (q->fd < 0) {
		query_free(&q->base);
		return NULL;
	}
	q->path = str_dup(str_from(path));
	q->events = lru_new(&present_type, EVENTS_MAX);
	if (q->path == NULL || q->events == NULL) {
		no_memory(err);
		query_free(&q->base);
		return NULL;
	}
	q->phase = S_ISREG(st.st_mode) ? SCANNING : COPYING;
	/* Standard input may be positioned in the middle of a file. */
	at = q->phase == SCANNING ? lseek(q->fd, 0, SEEK_CUR) : 0;
	line_reader_restart(&q->lines, q->fd, (uint64_t)at, q->phase == COPYING);
	if (q->phase == COPYING && (q->copy = tmpfile()) == NULL) {
		lines_system_error("a temporary file for the copy of a pipe", err);
		query_free(&q->base);
		return NULL;
	}
	return &q->base;
}
