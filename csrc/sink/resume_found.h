/*
 * resume_found.h - the events of earlier processes that may be continued, by the key of their series, until they are
 * adopted. One thread at a time. `now` is monotonic.
 */
#ifndef EVREC_RESUME_FOUND_H
#define EVREC_RESUME_FOUND_H

#include "event/key.h"
#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

struct resume_found {
	struct lru *events; /* series key -> struct found */
	struct buf key;
	bool note_in_key;
	int64_t valid_for; /* ns */
};

bool resume_found_init(struct resume_found *found, const evrec_series_options *options); /* false: no memory */
void resume_found_destroy(struct resume_found *found);

/* The last occurrence of an event in the new style. */
int64_t resume_found_last(const evrec_fields *event);
/*
 * Adds a copy of the event, found by `finder`, whose instance was set to the one in the key. Of events with one key,
 * which processes without `resume` leave, the latest stays. False: no memory.
 */
bool resume_found_add(struct resume_found *found, const evrec_fields *event, const void *finder, int64_t now);
/* Passes the events that `finder` found to the pipeline (outbox_bring), as far as there is memory. */
void resume_found_bring(struct resume_found *found, const void *finder, struct outbox *ob);
/*
 * True: the event of a create was found; removes it, and fills *outcome, which was all zero. Only for finish_time after
 * it was found: later the pipeline may have finished it.
 */
bool resume_found_adopt(struct resume_found *found, const evrec_fields *event, int64_t now, struct outcome *outcome);
/*
 * Removes the event that a write patches, as its count is then out of date. Removes all events, if there is no memory to
 * make the key. `listing`: the listing of its controller and instance is under way, and may show a count from before the
 * patch, so no event with this key is added later.
 */
void resume_found_patched(struct resume_found *found, const evrec_fields *event, bool listing);

#pragma GCC visibility pop

#endif
