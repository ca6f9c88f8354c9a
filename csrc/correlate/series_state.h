/*
 * series_state.h - the events of a series as bytes, for state.h.
 */
#ifndef EVREC_SERIES_STATE_H
#define EVREC_SERIES_STATE_H

#include "correlate/restored.h"
#include "correlate/series.h"

#pragma GCC visibility push(hidden)

struct spam_filter;

struct lru *series_cache(struct series *s);
struct spam_filter *series_spam_filter(struct series *s); /* NULL: without rate_limit */

/* Appends the value of an entry to `out`. False: the entry was removed. */
bool series_save(const void *value, struct buf *out);
/*
 * Makes an entry of such a value; an empty value removes the entry. A series that was not seen for finish_time has
 * ended, and is not restored, unless its count may not be written yet. Reports nothing.
 */
enum restored series_restore(struct series *s, struct key *key, evrec_str value, int64_t now);
/* Once all entries are restored: reports each series of more than one occurrence as "Unknown". */
void series_tell_restored(struct series *s);

#pragma GCC visibility pop

#endif
