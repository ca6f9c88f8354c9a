/*
 * trace_line.h - the lines of a trace: events as they were recorded, before a correlator saw them. Pure. Any thread.
 *
 *   {"evrec_trace":1,"evrec":"0.1.0","clock":"real","correlator":{"lru_cache_size":4096,...},   the first line
 *    "key_func":false,"spam_key_func":true}
 *   {"id":1,"t":1700000000.000000000,"event":{...},"keys":{"spam":"..."}}                       defines an event, and has it occur
 *   {"id":1,"t":1700000060.000000000}                                                           the same event once more
 *   {"lost":12,"from":1700000061.000000000,"to":1700000062.000000000}                           a gap
 *   {"end":"max_bytes","t":1700000063.000000000}                                                nothing follows
 *
 * Times are seconds since 1970 with nine fractional digits, by the broadcaster's clock. `at` after `t` is when the event
 * happened, if that is another time. An id is used again for another event once TRACE_IDS others were used, so that a
 * writer and a reader need to remember only so many events. The event is JSON of core/v1 without name and times. `keys`
 * has what key_func ("aggregate", "local") and spam_key_func ("spam") returned, if they were set and did not choose the
 * default.
 */
#ifndef EVREC_TRACE_LINE_H
#define EVREC_TRACE_LINE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define TRACE_VERSION 1
#define TRACE_IDS 4096 /* the ids; a writer knows as many events at a time, a reader at least as many */
#define TRACE_START "{\"evrec_trace\":"

/* Keys that functions chose for an event; a key without data is the default's. Borrowed. */
struct trace_keys {
	evrec_str aggregate, local, spam;
};

/* The first line's content. */
struct trace_header {
	bool fake_clock;
	evrec_correlator_options correlator; /* of its functions only whether they are set */
};

void trace_put_header(struct buf *out, const struct trace_header *header);
/* An occurrence at `t`; `at` is when the event happened. `event` is NULL if the id is already defined. */
void trace_put_event(struct buf *out, unsigned id, int64_t t, int64_t at, const evrec_fields *event,
                     const struct trace_keys *keys);
void trace_put_gap(struct buf *out, uint64_t lost, int64_t from, int64_t to);
/* `why` is "max_bytes", the one reason that readers know. */
void trace_put_end(struct buf *out, const char *why, int64_t t);
/* Appends bytes that are equal for events that can have the same id, and different for all others. */
void trace_put_identity(struct buf *out, const evrec_fields *event, const struct trace_keys *keys);

enum trace_kind { TRACE_HEADER, TRACE_EVENT, TRACE_AGAIN, TRACE_GAP, TRACE_END };

/* A line that was read. All zero before the first one. */
struct trace_line {
	enum trace_kind kind;
	unsigned version; /* of TRACE_HEADER */
	bool real_clock;  /* likewise: the times are those of a real clock, which may be set back */
	unsigned id;      /* of TRACE_EVENT and TRACE_AGAIN: 1 to TRACE_IDS */
	int64_t t, at;    /* likewise */
	/* Of TRACE_EVENT; both borrow from the line that was read. */
	evrec_str text;       /* the whole line */
	evrec_str definition; /* its bytes after the times: lines with an equal definition have equal events and keys */
	/* Set by trace_read_definition. */
	evrec_event *event; /* the caller's to release */
	struct buf keys;    /* the bytes of the keys, one after the other */
	bool has_aggregate, has_spam;
	size_t aggregate_len, local_len, spam_len;
	uint64_t lost; /* of TRACE_GAP */
};

enum trace_read { TRACE_OK, TRACE_MALFORMED, TRACE_NO_MEMORY };
/* Reads a line without its newline, but does not parse a definition: a reader may know the event already. */
enum trace_read trace_read_line(evrec_str text, struct trace_line *line);
/* Reads the definition of a TRACE_EVENT. The buffer of `line` is used again. */
enum trace_read trace_read_definition(struct trace_line *line);
/* The keys of a definition; they borrow from the buffer of `line`. */
struct trace_keys trace_line_keys(const struct trace_line *line);

#pragma GCC visibility pop

#endif
