/*
 * aggregator.h - decides which events are similar enough to be combined into one (client-go's EventAggregator).
 * Pure: the caller passes the time. One thread at a time.
 */
#ifndef EVREC_AGGREGATOR_H
#define EVREC_AGGREGATOR_H

#include "correlate/restored.h"

#pragma GCC visibility push(hidden)

struct aggregator {
	struct lru *cache;    /* aggregate key -> struct aggregate */
	unsigned max_events;  /* distinct local keys from which on events are combined */
	int64_t max_interval; /* a pause in ns after which an aggregate starts anew */
};

/* False: no memory. aggregator_destroy is fine then too. */
bool aggregator_create(struct aggregator *a, size_t cache_size, unsigned max_events, int64_t max_interval);
void aggregator_destroy(struct aggregator *a);

/*
 * Notes an event by its aggregate key and its local key, the part in which similar events differ. Sets *combine if the
 * event is to be written as a part of the aggregate. False: no memory.
 */
bool aggregator_observe(struct aggregator *a, struct key *aggregate_key, evrec_str local_key, int64_t now,
                        bool *combine);

/* The key of an entry, valid until the next call. False: the entry was evicted. */
bool aggregator_key(const struct aggregator *a, uint64_t handle, evrec_str *key);

/* For state.h: appends the value of an entry to `out`; sets an entry to it, or makes one. */
void aggregator_save(const void *value, struct buf *out);
enum restored aggregator_restore(struct aggregator *a, struct key *key, evrec_str value);

#pragma GCC visibility pop

#endif
