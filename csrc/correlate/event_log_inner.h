/*
 * event_log_inner.h - an entry of an event log, for the files that implement it.
 *
 *   event_log.c        counting, when a write is due, other processes, the server's answers
 *   event_log_state.c  what is saved and restored, and what a killed process had counted
 */
#ifndef EVREC_EVENT_LOG_INNER_H
#define EVREC_EVENT_LOG_INNER_H

#include "correlate/event_log.h"

#pragma GCC visibility push(hidden)

/* One event, as the log knows it: the value of an entry of the log's cache. */
struct observation {
	int64_t first;
	struct buf text;   /* name, then resource version */
	int64_t scheduled; /* when the last write was made, or is due; 0: none was */
	struct origins *origins;
	uint32_t name_len;
	int32_t count;  /* 0: the entry was just made, and has no name yet */
	int32_t own;    /* of the count: occurrences that owners, this one or earlier ones, have recorded themselves */
	uint32_t known; /* 1 + the `own` that a killed process has left in this entry; 0: none */
};

static inline evrec_str name_of(const struct observation *o)
{
	return (evrec_str){ o->text.data, o->name_len };
}

/* ---- event_log.c ---- */

/*
 * Sets name and resource version. Either string may lie in the observation's own text: the new text is built in l->text,
 * and then the two buffers swap, so that the old strings are valid after this call. False: no memory, and the text is
 * unchanged.
 */
bool event_log_set_text(struct event_log *l, struct observation *o, evrec_str name, evrec_str resource_version);
/*
 * The entry of an answer: the entry of its event key if the names are equal, else an entry with the answer's name, else
 * the entry of its event key. Both the entry of the event key and the result count as used. NULL: none.
 */
struct observation *event_log_find(struct event_log *l, struct key *event_key, evrec_str name);

#pragma GCC visibility pop

#endif
