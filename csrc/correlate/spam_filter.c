#include "correlate/spam_filter.h"

#include "base/token_bucket.h"

#include <math.h>

/* Events of several threads and processes may come in the wrong order, by less than this. */
#define CLOCK_SET_BACK (60 * EVREC_SECOND)

static const struct lru_type cache_type = { .value_size = sizeof(struct token_bucket) };

bool spam_filter_create(struct spam_filter *f, size_t cache_size, unsigned burst, double qps)
{
	f->burst = burst;
	/* client-go keeps the rate as a float32, and the time of the next token depends on its last bit. */
	f->qps = (double)(float)qps;
	f->cache = lru_new(&cache_type, cache_size);
	return f->cache != NULL;
}

void spam_filter_destroy(struct spam_filter *f)
{
	lru_free(f->cache);
}

void spam_filter_use_real_clock(struct spam_filter *f)
{
	f->real_clock = true;
}

HOT bool spam_filter_observe(struct spam_filter *f, struct key *spam_key, int64_t now, bool *skip)
{
	bool fresh;
	struct token_bucket *bucket = lru_put(f->cache, spam_key, &fresh);

	if (bucket == NULL) {
		return false;
	}
	if (fresh) {
		token_bucket_fill(bucket, f->burst, now);
	} else if (f->real_clock && time_since(bucket->last, now) > CLOCK_SET_BACK) {
		bucket->last = now;
	}
	*skip = !token_bucket_take(bucket, f->burst, f->qps, now);
	return true;
}

bool spam_filter_key(const struct spam_filter *f, uint64_t handle, evrec_str *key)
{
	const struct token_bucket *bucket = lru_at(f->cache, handle);

	if (bucket == NULL) {
		return false;
	}
	*key = lru_key(f->cache, bucket);
	return true;
}

void spam_filter_tokens(const struct spam_filter *f, uint64_t handle, int64_t now, double *tokens, int64_t *next_token)
{
	const struct token_bucket *bucket = lru_at(f->cache, handle);
	struct token_bucket full;

	if (bucket == NULL) {
		token_bucket_fill(&full, f->burst, now);
		bucket = &full;
	}
	*tokens = token_bucket_tokens(bucket, f->burst, f->qps, now);
	*next_token = token_bucket_wait(bucket, f->burst, f->qps, now);
}

void spam_filter_save(const void *value, struct buf *out)
{
	buf_put(out, value, sizeof(struct token_bucket));
}

enum restored spam_filter_restore(struct spam_filter *f, struct key *key, evrec_str value)
{
	struct token_bucket saved, *bucket;
	bool fresh;

	if (!restored_take(&value, &saved, sizeof(saved)) || value.len != 0 || !isfinite(saved.tokens)) {
		return RESTORED_INVALID;
	}
	bucket = lru_put(f->cache, key, &fresh);
	if (bucket == NULL) {
		return RESTORED_NO_MEMORY;
	}
	*bucket = saved;
	return RESTORED;
}
