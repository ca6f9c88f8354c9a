/*
 * series.h - the events of one loop as one event with a count (events.k8s.io/v1, client-go's tools/events). Pure: the
 * caller passes the time, in ns since 1970. One thread at a time.
 *
 *                first               second                  further ones
 *   (unknown) ---------> single ------------> ongoing ---.
 *                create              patch       ^       | counted: a deferred patch
 *                                                `-------'
 *
 *   single or ongoing, not seen for longer than finish_time at a tick of it: finished, and forgotten
 *
 * With the option rate_limit a create, and a patch at once, take a token. Without one the first occurrence is skipped, and
 * the next one tries to create the event; the second is counted, as the further ones are.
 *
 * client-go's two loops tick every refresh_interval and every finish_time, from the start on. A counted occurrence is due
 * at the next heartbeat, or at the tick that finishes the series if nothing follows, whichever comes first. The outbox
 * holds it until then (outbox.h: `due`), so the sender writes it in time even if the embedder's thread is asleep, and the
 * ends of the process, which write what the outbox holds, need not know of series.
 *
 * So only two things are left for the embedder's thread to do in time: forget what is finished, and tell of it. An
 * observation does both by itself for its own series; series_tick does it for those seen longest ago.
 *
 * Differences from client-go, each on purpose:
 *   - resource versions and field paths are no part of the key
 *   - the cache is bounded: for a new event the least recently seen one is finished
 *   - a series without news is finished without a request, for a patch that changes nothing does nothing
 *   - the note is that of the last event
 *   - if the create was dropped, a later occurrence creates the event again. Until 30 s after the drop it is deferred.
 *     But if the create had no room, it is not: a deferred write, which no limit holds for, takes the place of one that
 *     the outbox had room for. So there are max_series deferred writes at most.
 */
#ifndef EVREC_SERIES_H
#define EVREC_SERIES_H

#include "correlate/observed.h"
#include "event/key.h"

#pragma GCC visibility push(hidden)

struct series;

/* A series that has ended, or an event that was taken over from an earlier process. Borrowed for the call. */
struct series_told {
	uint64_t handle;
	/*
	 * The event, with series_count, series_last, event_time and series_state: "Ongoing", "Finished", "Unknown". Empty: an
	 * event of one occurrence that an earlier process may not have written.
	 */
	const evrec_fields *event;
	uint32_t base; /* occurrences that earlier processes counted, at most series_count */
	bool evicted;  /* before its time, to make room */
	/*
	 * The write that carried the last count could not say that the series is finished: a sink that shows states
	 * (not an API server) is to be told by a write of its own.
	 */
	bool untold;
	/*
	 * Of "Unknown" or none: the earlier process may not have written this count. A write without an occurrence is due then; if
	 * nothing follows until then, and `finishes`, the series is finished. 0: no write is.
	 */
	int64_t due;
	bool finishes;
};

typedef void series_tell_func(void *ctx, const struct series_told *told);

/*
 * `limits` are the options of rate_limit, copied; both were checked. The ticks count from `now`. `tell` is called from
 * inside series_observe and series_tick, and must not call them; single events that are forgotten are not told. NULL: no
 * memory.
 */
struct series *series_new(const evrec_series_options *options, const evrec_correlator_options *limits, int64_t now,
                          series_tell_func *tell, void *ctx);
/* As spam_filter_use_real_clock. */
void series_use_real_clock(struct series *s);
void series_free(struct series *s); /* NULL is fine; tells nothing */

/*
 * Decides what becomes of an event, of which `keys` were made: 0. *observed borrows from `event` and from the series
 * until the next call: name, event time (`first`), count, handle, patch, skip, why (EVREC_NEW, EVREC_SERIES,
 * EVREC_RATE_LIMITED), due, finishes, base, merged, bucket. EVREC_ENOMEM: the event was not counted, but its series may
 * have been finished, if that was due. EVREC_EINVALID: from inside a callback of this series.
 */
int series_observe(struct series *s, const evrec_fields *event, struct keys *keys, int64_t now,
                   struct observed *observed);

/* Forgets and tells what is finished by `now`: at most `max` events and series, those seen longest ago first. */
void series_tick(struct series *s, int64_t now, size_t max);
/* When series_tick has something to do: INT64_MAX if never. In the past as long as `max` left something. */
int64_t series_next_due(const struct series *s);

/*
 * From the outbox: the write with this handle was answered. The event has this name, unless that is empty, and `base`
 * occurrences of earlier processes.
 */
void series_answered(struct series *s, uint64_t handle, evrec_str name, uint32_t base);
/* Likewise: it was dropped at `now`, or outbox_submit did not take it. */
void series_dropped(struct series *s, uint64_t handle, enum evrec_cause cause, int64_t now);

/*
 * The deferred write with this handle (0: each one) is written before its time, or was not deferred after all, since
 * another write of it was still pending. So it cannot say that the series is finished.
 */
void series_released(struct series *s, uint64_t handle);

/*
 * Takes over an event that an earlier process wrote, with its name, event time and count, unless there are max_series.
 * If its key is known and was not observed yet, the larger count of the same event holds. The state of a series is
 * "Unknown", which is told, until it is observed; that of an event with a count of 1 is not told. False: no memory.
 */
bool series_resume(struct series *s, const evrec_fields *event, int64_t now);

void series_get_stats(const struct series *s, evrec_series_stats *stats);
/* How often spam_key_func has returned false. */
uint64_t series_callback_errors(const struct series *s);

/* Sets the keys and the tokens in *what, as correlator_explain does. `bucket` is that of a struct observed. */
void series_explain(const struct series *s, uint64_t bucket, int64_t now, evrec_suppressed *what);

/* ---- for a state that outlives the process (state.h) ---- */

/*
 * Other processes keep the occurrences that are observed from now on, until series_settled, and record them again if this
 * process is killed: a state has the count without these.
 */
void series_for_others(struct series *s, bool others);
/* Likewise from the outbox: `n` occurrences have ended; `others` of them other processes do not keep any more. */
void series_settled(struct series *s, uint64_t handle, uint32_t n, uint32_t others);

/*
 * Is told what changes in a series, each time between a `begin` and an `end`: what was observed, the handle of an entry that
 * has changed otherwise, and the key of a series that is finished.
 */
struct series_watch {
	void (*begin)(void *ctx);
	void (*observed)(void *ctx, const struct observed *observed, int64_t now);
	void (*changed)(void *ctx, uint64_t handle);
	void (*removed)(void *ctx, evrec_str key, uint64_t hash, int64_t now);
	void (*end)(void *ctx);
	void *ctx;
};
/* From now on; `watch` must outlive the series. */
void series_set_watch(struct series *s, const struct series_watch *watch);

#pragma GCC visibility pop

#endif
