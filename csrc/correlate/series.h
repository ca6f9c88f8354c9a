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
 * So the embedder's thread has only two tasks: remove finished series, and report their end. An observation does both
 * for its own series; series_tick does both for the series seen longest ago.
 *
 * Differences from client-go, each on purpose:
 *   - resource versions and field paths are no part of the key
 *   - the cache is bounded: a new event finishes the least recently seen one
 *   - a series whose count is written is finished without a request, as a patch would change nothing
 *   - the note is that of the last event
 *   - if the create was dropped, a later occurrence creates the event again; until 30 s after the drop this create is
 *     deferred. It is not deferred if the dropped create had no room: deferred writes are outside the outbox's limits,
 *     so each must replace a write that had room. So there are at most max_series deferred writes.
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
	 * The write with the last count could not say that the series is finished: a sink that shows states (not an API
	 * server) gets one more write.
	 */
	bool untold;
	/*
	 * For "Unknown" or an empty state: the earlier process may not have written this count. A write without an
	 * occurrence is due at this time; if nothing follows until then, and `finishes`, the series is finished. 0: no
	 * write is due.
	 */
	int64_t due;
	bool finishes;
};

typedef void series_tell_func(void *ctx, const struct series_told *told);

/*
 * `limits` are the options of rate_limit; both options were checked, and are copied. The ticks count from `now`. `tell`
 * is called from inside series_observe and series_tick, and must not call them; it is not called for single events that
 * are forgotten. NULL: no memory.
 */
struct series *series_new(const evrec_series_options *options, const evrec_correlator_options *limits, int64_t now,
                          series_tell_func *tell, void *ctx);
/* As spam_filter_use_real_clock. */
void series_use_real_clock(struct series *s);
void series_free(struct series *s); /* NULL is fine; tells nothing */

/*
 * Observes an event, of which `keys` were made. 0, or an error below. *observed borrows from `event` and from the
 * series until the next call: name, event time (`first`), count, handle, patch, skip, why (EVREC_NEW, EVREC_SERIES,
 * EVREC_RATE_LIMITED), due, finishes, base, merged, bucket. EVREC_ENOMEM: the event was not counted, but its series may
 * have been finished, if that was due. EVREC_EINVALID: from inside a callback of this series.
 */
int series_observe(struct series *s, const evrec_fields *event, struct keys *keys, int64_t now,
                   struct observed *observed);

/*
 * Removes the events and series that are finished by `now`, and reports the series: at most `max`, those seen longest
 * ago first.
 */
void series_tick(struct series *s, int64_t now, size_t max);
/* When series_tick is due: INT64_MAX: never. In the past if `max` has left finished entries. */
int64_t series_next_due(const struct series *s);

/*
 * From the outbox: the write with this handle was answered. The event has this name, unless that is empty, and `base`
 * occurrences of earlier processes.
 */
void series_answered(struct series *s, uint64_t handle, evrec_str name, uint32_t base);
/* From the outbox: the write with this handle was dropped at `now`, or outbox_submit did not take it. */
void series_dropped(struct series *s, uint64_t handle, enum evrec_cause cause, int64_t now);
/*
 * From the outbox: the write with this handle was dropped, but the server may have its event. `name` and `base` are as for
 * series_answered.
 */
void series_maybe_created(struct series *s, uint64_t handle, evrec_str name, uint32_t base);

/*
 * The deferred write with this handle (0: each one) is written before its time, or was not deferred after all, since
 * another write of it was still pending. So it cannot say that the series is finished.
 */
void series_released(struct series *s, uint64_t handle);

/*
 * Takes over an event that an earlier process wrote, with its name, event time and count, unless there are max_series.
 * If its key is known and was not observed yet, the larger count of the same event holds. A series is reported as
 * "Unknown", until it is observed; an event with a count of 1 is not reported. False: no memory.
 */
bool series_resume(struct series *s, const evrec_fields *event, int64_t now);

void series_get_stats(const struct series *s, evrec_series_stats *stats);
/* How often spam_key_func has returned false. */
uint64_t series_callback_errors(const struct series *s);

/* Sets the keys and the tokens in *what, as correlator_explain does. `bucket` is that of a struct observed. */
void series_explain(const struct series *s, uint64_t bucket, int64_t now, evrec_suppressed *what);

/* ---- for a state that outlives the process (state.h) ---- */

/*
 * `others`: other processes keep the occurrences that are observed from now on, until series_settled, and record them
 * again if this process is killed. So a state has the count without these.
 */
void series_for_others(struct series *s, bool others);
/* From the outbox: `n` occurrences have ended; other processes keep `others` of them no longer. */
void series_settled(struct series *s, uint64_t handle, uint32_t n, uint32_t others);

/*
 * The functions are called for each change of a series, between a `begin` and an `end`: with the observed event, with
 * the handle of an entry that has changed otherwise, or with the key of a series that is finished.
 */
struct series_watch {
	void (*begin)(void *ctx);
	void (*observed)(void *ctx, const struct observed *observed, int64_t now);
	void (*changed)(void *ctx, uint64_t handle);
	void (*removed)(void *ctx, evrec_str key, uint64_t hash, int64_t now);
	void (*end)(void *ctx);
	void *ctx;
};
/* Sets the watch, which must outlive the series. */
void series_set_watch(struct series *s, const struct series_watch *watch);

#pragma GCC visibility pop

#endif
