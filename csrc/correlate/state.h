/*
 * state.h - the caches of a correlator, or a series, as bytes, for a file that outlives the process: which entries have
 * changed, their bytes, and back. Pure: the caller passes the time, in ns since 1970, and does the I/O. One thread at a
 * time.
 *
 *   state_observed, state_answered   note the entries that an event or an answer has changed: a few instructions
 *   state_note_all                   the same for all entries that there are
 *   state_take_changes               the entries that have changed until state_begin_changes and were not taken since
 *   state_take_all                   all entries, in portions: a file that begins with them needs nothing older
 *   state_removed                    a series is finished
 *   state_load                       from such bytes into the caches
 *
 * Each entry is a record: its length, a checksum, which cache it is of, when it was used last, its key and its value. A
 * later record of a key takes the place of an earlier one. A record also has the number of its last use, and state_load
 * goes by the order of these numbers. So evictions need no records: a full cache evicts the same entries as before.
 *
 * Numbers are in the machine's byte order: the bytes are for the same machine.
 */
#ifndef EVREC_STATE_H
#define EVREC_STATE_H

#include "correlate/correlator.h"
#include "correlate/series.h"

#pragma GCC visibility push(hidden)

/* Changes with each change of a record, of a key or of a key's hash. */
#define STATE_VERSION 3

struct state;

/* The state of this correlator, which must outlive it. NULL: no memory. */
struct state *state_new(evrec_correlator *correlator);
/* Likewise, of a series. Its entries are one cache, and its buckets, if it limits the rate, another one. */
struct state *state_new_of_series(struct series *series);
void state_free(struct state *s); /* NULL is fine */

/*
 * After correlator_observe or series_observe succeeded: the entries of *o have changed. If there is no memory to note
 * that, the entry is saved after its next change.
 */
void state_observed(struct state *s, const struct observed *o, int64_t now);
/* After correlator_recover, which may have made the entry of the event log. */
void state_recovered(struct state *s, uint64_t handle, int64_t now);
/* After correlator_answered, or if the entry of a series has changed otherwise than by an event. */
void state_answered(struct state *s, uint64_t handle);
/*
 * The series with this key is finished. This makes a record, too, as otherwise the next process would continue the
 * series. If there is no memory for the record, or about a thousand wait to be taken, the next process may report the
 * end once more.
 */
void state_removed(struct state *s, evrec_str key, uint64_t hash, int64_t now);

/*
 * For a correlator that was not watched so far: notes the use of all its entries, in their order of use. None counts as
 * changed. False: no memory.
 */
bool state_note_all(struct state *s, int64_t now);

/* state_take_changes takes the entries that have changed until now, each in its state when it is taken. */
void state_begin_changes(struct state *s);
/* The number of entries that state_take_changes has not taken yet. */
size_t state_changes(const struct state *s);
/*
 * Append up to `max` records to `out`, and return how many entries they took; fewer than `max`: no more are left. If
 * out->failed, these entries are lost to state_take_changes. *cursor begins at 0.
 */
size_t state_take_changes(struct state *s, size_t max, struct buf *out);
size_t state_take_all(struct state *s, uint64_t *cursor, size_t max, struct buf *out);

struct state_loaded {
	size_t records;   /* put into a cache */
	size_t old;       /* not used for longer than max_age, and so left out */
	size_t valid_len; /* the bytes before the first damaged record; all of them: none is */
};
/*
 * Puts the records before the first damaged one into the caches; none of them counts as changed. Series are told as
 * "Unknown". False: no memory for all of them.
 */
bool state_load(struct state *s, evrec_str bytes, int64_t now, int64_t max_age, struct state_loaded *loaded);

#pragma GCC visibility pop

#endif
