/*
 * state_inner.h - a state and its records, for the files that implement it.
 */
#ifndef EVREC_STATE_INNER_H
#define EVREC_STATE_INNER_H

#include "correlate/aggregator.h"
#include "correlate/event_log.h"
#include "correlate/series_state.h"
#include "correlate/spam_filter.h"
#include "correlate/state.h"

#pragma GCC visibility push(hidden)

enum cache { AGGREGATES, OBSERVATIONS, BUCKETS, SERIES, CACHES };

/* The last use, and the change, of the entry in one place of a cache. */
struct mark {
	uint64_t used;  /* the number of its last use; 0: not noted yet */
	int64_t at;     /* the time of its last use */
	uint32_t next;  /* the next place in the queue, if it is in the queue */
	bool is_queued; /* the entry has changed, and was not taken since */
};

/* The marks of a cache, by place, and the queue of the entries that have changed. */
struct marks {
	struct lru *cache; /* NULL: a correlator has no series, and a series no aggregates */
	struct mark *marks;
	uint32_t room;
	uint32_t head, tail; /* NONE: the queue is empty */
	size_t queued, due;  /* entries in the queue; how many of the first ones state_take_changes takes */
};

struct state {
	struct caches caches;
	struct series *series; /* NULL: it is of a correlator */
	struct marks of[CACHES];
	uint64_t uses;      /* observations, also those of earlier processes */
	struct buf removed; /* records without a value, for state_take_changes */
};

struct record_head {
	uint32_t len; /* of the record without this head */
	uint32_t sum;
};

/* After the head. The key and the value follow. */
struct record {
	uint64_t used;
	int64_t at;
	uint64_t hash;
	uint32_t key_len;
	uint32_t cache;
};

/* Notes the use of an entry. False: no memory. */
bool state_mark_used(struct marks *m, uint32_t place, uint64_t used, int64_t at);

static inline uint32_t state_checksum(evrec_str bytes)
{
	return (uint32_t)lru_hash(bytes);
}

#pragma GCC visibility pop

#endif
