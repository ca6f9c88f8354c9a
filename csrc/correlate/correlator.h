/*
 * correlator.h - client-go's EventCorrelator, as a sink's pipeline uses it: an event passes aggregator, event_log and
 * spam_filter. Pure: the caller passes the time, in ns since 1970. One thread at a time.
 */
#ifndef EVREC_CORRELATOR_H
#define EVREC_CORRELATOR_H

#include "correlate/observed.h"
#include "correlate/origins.h"
#include "event/key.h"

#pragma GCC visibility push(hidden)

/*
 * Correlates an event. 0, or an error below. `keys` are the event's, made by keys_make; the correlator stores in them
 * the places of its entries. *observed borrows from `event` and from the correlator, until the next call. Errors:
 * EVREC_ENOMEM; EVREC_EINVALID from inside a callback of this correlator. `origin` is the process that recorded the
 * event; NULL: this process.
 */
int correlator_observe(evrec_correlator *correlator, const evrec_fields *event, struct keys *keys, int64_t now,
                       const struct origin *origin, struct observed *observed);
/*
 * `n` occurrences of the entry with this handle, which came over this connection (struct origin), are to be acknowledged in
 * a batch, as origins_tell has it; and the process has got that, and will not record them again. `limited`: they needed a
 * token, and had none.
 */
void correlator_tell(evrec_correlator *correlator, uint64_t handle, uint64_t connection, bool limited, uint32_t n,
                     uint64_t batch);
void correlator_acknowledge(evrec_correlator *correlator, uint64_t handle, uint64_t connection, bool limited,
                            uint32_t n);
/* The process of this connection records none of its occurrences again. */
void correlator_leave(evrec_correlator *correlator, uint64_t connection);

/* As origins_reconnect, for all events. */
void correlator_reconnect(evrec_correlator *correlator, const struct origin *from);
/*
 * After a state was loaded whose process was killed: that process had counted `own` occurrences of this event, see
 * event_log_recover. Without memory they are lost.
 */
void correlator_recover(evrec_correlator *correlator, const evrec_fields *event, int32_t own, int64_t now);

/*
 * From now on the writes of an event are at least `ns` apart: correlator_observe sets observed->due, as event_log_schedule
 * says, of each occurrence that is not skipped. Only an occurrence that is to be written at once needs a token: one that is
 * due later adds to a write whose times are bounded already. Before the first event. Without it each occurrence needs a token,
 * as in client-go, and observed->due is left as it is.
 */
void correlator_set_min_interval(evrec_correlator *correlator, int64_t ns);
/* As spam_filter_use_real_clock. */
void correlator_use_real_clock(evrec_correlator *correlator);
/* As event_log_released, and event_log_refused. */
void correlator_released(evrec_correlator *correlator, uint64_t handle, int64_t now);
void correlator_refused(evrec_correlator *correlator, uint64_t handle);

/* The checks of evrec_correlator_new. */
int correlator_check_options(const evrec_correlator_options *options, evrec_error *err);

/* As evrec_correlator_answered, which is this function's public name. */
void correlator_answered(evrec_correlator *correlator, uint64_t handle, evrec_str name, evrec_str resource_version);

/* The functions are called for each change of a correlator: `begin` before it, and one of the others after it. */
struct correlator_watch {
	void (*begin)(void *ctx);
	/* correlator_observe; *observed, NULL if it failed. */
	void (*observed)(void *ctx, const struct observed *observed, int64_t now);
	/* correlator_recover; the handle of the entry, which may be a new one; 0: there is none. */
	void (*recovered)(void *ctx, uint64_t handle, int64_t now);
	/*
	 * correlator_answered, correlator_tell, correlator_acknowledge; and correlator_leave and correlator_reconnect for each
	 * entry: the handle of the entry.
	 */
	void (*changed)(void *ctx, uint64_t handle);
	void *ctx;
};
/* Sets the watch, which must outlive the correlator. Without a watch a recording call pays nothing. */
void correlator_set_watch(evrec_correlator *correlator, const struct correlator_watch *watch);

/* The caches of a correlator, for state.h. */
struct caches {
	struct aggregator *aggregator;
	struct event_log *event_log;
	struct spam_filter *spam_filter;
};
struct caches correlator_caches(evrec_correlator *correlator);

/*
 * Sets in *what the keys of the entries with these handles, and the tokens of `bucket`. `aggregate` and `bucket` are
 * those of a struct observed; either entry may have been evicted since.
 */
void correlator_explain(const evrec_correlator *correlator, uint64_t aggregate, uint64_t bucket, int64_t now,
                        evrec_suppressed *what);

#pragma GCC visibility pop

#endif
