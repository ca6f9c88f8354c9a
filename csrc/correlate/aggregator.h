/*
 * aggregator.h - which events are similar enough to be told as one (semantics 2.1, client-go's EventAggregator).
 * Pure: now is an argument. One thread at a time.
 */
#ifndef EVREC_AGGREGATOR_H
#define EVREC_AGGREGATOR_H

#include "base/lru.h"

#pragma GCC visibility push(hidden)

struct aggregator {
	struct lru *cache; /* aggregate key -> struct aggregate */
	unsigned max_events;
	int64_t max_interval;
};

bool aggregator_create(struct aggregator *a, size_t cache_size, unsigned max_events, int64_t max_interval);
void aggregator_destroy(struct aggregator *a);

/*
 * Takes note of an event by its aggregate key and its local key, the part in which similar events differ. Sets
 * *combine where it is to be told as a part of the aggregate. False: no memory.
 */
bool aggregator_observe(struct aggregator *a, struct key *aggregate_key, evrec_str local_key, int64_t now,
                        bool *combine);

#pragma GCC visibility pop

#endif
