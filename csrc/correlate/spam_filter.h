/*
 * spam_filter.h - limits the events of one source about one object (client-go's EventSourceObjectSpamFilter), by a
 * cache of token buckets. Pure: the caller passes the time. One thread at a time.
 */
#ifndef EVREC_SPAM_FILTER_H
#define EVREC_SPAM_FILTER_H

#include "correlate/restored.h"

#pragma GCC visibility push(hidden)

struct spam_filter {
	struct lru *cache; /* spam key -> struct token_bucket */
	unsigned burst;    /* the size of a bucket in tokens */
	double qps;        /* the refill in tokens a second */
	bool real_clock;   /* spam_filter_use_real_clock was called */
};

/* False: no memory. spam_filter_destroy is fine then too. */
bool spam_filter_create(struct spam_filter *f, size_t cache_size, unsigned burst, double qps);
void spam_filter_destroy(struct spam_filter *f);

/*
 * The times are those of a real clock, which may be set back. A bucket refills from the new time on then, as it does with the
 * monotonic clock that client-go has outside of its tests. Without this call it refills when its old time has come again,
 * as in client-go under a fake clock.
 */
void spam_filter_use_real_clock(struct spam_filter *f);

/* Takes a token for an event with this spam key. Sets *skip if there was none. False: no memory. */
bool spam_filter_observe(struct spam_filter *f, struct key *spam_key, int64_t now, bool *skip);

/* The key of an entry, valid until the next call. False: the entry was evicted. */
bool spam_filter_key(const struct spam_filter *f, uint64_t handle, evrec_str *key);
/* The tokens of an entry, and the ns until there is a whole one (INT64_MAX: never). Evicted: those of a full bucket. */
void spam_filter_tokens(const struct spam_filter *f, uint64_t handle, int64_t now, double *tokens, int64_t *next_token);

/* For state.h: appends the value of an entry to `out`; sets an entry to it, or makes one. */
void spam_filter_save(const void *value, struct buf *out);
enum restored spam_filter_restore(struct spam_filter *f, struct key *key, evrec_str value);

#pragma GCC visibility pop

#endif
