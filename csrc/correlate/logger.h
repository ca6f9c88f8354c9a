/*
 * logger.h - how often each event was seen, and what the server calls it (semantics 2.2, client-go's eventLogger).
 * Pure: now is an argument. One thread at a time.
 */
#ifndef EVREC_LOGGER_H
#define EVREC_LOGGER_H

#include "base/lru.h"
#include "correlate/observed.h"

#pragma GCC visibility push(hidden)

struct logger {
	struct lru *cache; /* event key or aggregate key -> struct observation */
	struct buf name;   /* of the event being observed, until its entry holds it */
};

bool logger_create(struct logger *l, size_t cache_size);
void logger_destroy(struct logger *l);

/*
 * Counts an event under its key: `observed` gets the name, resource version, first timestamp and count of its entry, and
 * the handle that logger_answered takes; where it is new and has no name, one is made, and where it has no count, 1.
 * What it points to then holds until the next call. Sets *known. False: no memory.
 */
bool logger_observe(struct logger *l, struct key *key, struct observed *observed, int64_t now, bool *known);

/*
 * The server's answer, late as it may be: sets name (unless empty) and resource version, nothing else. Of no effect
 * once the entry was evicted.
 */
void logger_answered(struct logger *l, uint64_t handle, evrec_str name, evrec_str resource_version);

/*
 * The server's answer as a whole event, filed under the entry of its name where there is one, else under its event
 * key: an aggregate was not observed under its own. Never lowers a count. False: no memory.
 */
bool logger_update(struct logger *l, struct key *event_key, const evrec_fields *event);

#pragma GCC visibility pop

#endif
