/*
 * bench.h - shared by the C programs of the benchmark. It makes the objects that events are about, opens evrec with a
 * sink that accepts every write immediately, and measures the CPU time of batches of events.
 */
#ifndef EVREC_BENCH_H
#define EVREC_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "evrec.h"

#define BATCH 1000 /* events between two polls of the broadcaster */

#define COMPONENT EVREC_STR("kubelet")
#define HOST EVREC_STR("node-1")
#define TYPE EVREC_STR("Warning")
#define REASON EVREC_STR("BackOff")
#define MESSAGE EVREC_STR("Back-off restarting failed container web in pod web-7d4b9c6f5b-00000")

_Noreturn static inline void die(const char *message)
{
	(void)fprintf(stderr, "bench: %s\n", message);
	exit(1);
}

/* `prefix` and the number with at least `digits` digits, in memory that is never freed. */
static inline evrec_str numbered(const char *prefix, int digits, size_t number)
{
	char line[128];
	const int len = snprintf(line, sizeof(line), "%s%0*zu", prefix, digits, number);
	char *kept = strdup(line);

	if (kept == NULL) {
		die("no memory");
	}
	return (evrec_str){ kept, (size_t)len };
}

static inline evrec_str name_of(size_t i)
{
	return numbered("web-7d4b9c6f5b-", 5, i);
}

static inline evrec_str uid_of(size_t i)
{
	return numbered("3f2c6a1e-58b0-4c1d-9e7f-", 12, i);
}

static inline evrec_reference object_of(size_t i)
{
	return (evrec_reference){
		.kind = EVREC_STR("Pod"),
		.api_version = EVREC_STR("v1"),
		.ns = EVREC_STR("shop"),
		.name = name_of(i),
		.uid = uid_of(i),
		.resource_version = EVREC_STR("81224"),
	};
}

/* An event with the fields that a recorder sets. */
static inline evrec_fields event_of(const evrec_reference *object, evrec_str message)
{
	evrec_fields event;

	evrec_fields_init(&event);
	event.name = EVREC_STR("web-7d4b9c6f5b-00000.17a2b3c4d5e6f708");
	event.ns = object->ns;
	event.regarding = *object;
	event.type = TYPE;
	event.reason = REASON;
	event.note = message;
	event.component = event.controller = COMPONENT;
	event.host = event.instance = HOST;
	event.first = event.last = INT64_C(1700000000) * EVREC_SECOND;
	event.count = 1;
	return event;
}

/* A broadcaster with a recorder and a sink; or a correlator alone, with `b`, `recorder` and `watch` NULL. */
struct evrec {
	evrec_correlator *correlator;
	evrec_broadcaster *b;
	evrec_recorder *recorder;
	evrec_watch *watch;
	uint64_t created, patched, skipped; /* counted by correlate() only */
};

static inline void accept_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)ctx;
	(void)event;
	answer->status = 201;
}

static inline void accept_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	(void)ctx;
	(void)event;
	(void)patch;
	answer->status = 200;
}

/* end_to_end: from a recorder to the sink, else the correlator alone. */
static inline struct evrec evrec_open(bool end_to_end, const evrec_correlator_options *options)
{
	static const evrec_sink_ops accepting = { .create = accept_create, .patch = accept_patch };
	struct evrec e = { 0 };
	evrec_sink *sink;
	evrec_error err;

	if (!end_to_end) {
		e.correlator = evrec_correlator_new(options, &err);
		return e.correlator != NULL ? e : (die(err.message), e);
	}
	e.b = evrec_broadcaster_new(NULL, &err);
	sink = e.b == NULL ? NULL : evrec_sink_new(&accepting, NULL, NULL, &err);
	e.watch = sink == NULL ? NULL : evrec_broadcaster_start_recording_to_sink(e.b, sink, options, &err);
	e.recorder = e.watch == NULL
	                     ? NULL
	                     : evrec_recorder_new(
				       e.b, &(evrec_recorder_options){ .component = COMPONENT, .host = HOST }, &err);
	if (e.recorder == NULL) {
		die(err.message);
	}
	evrec_sink_release(sink);
	return e;
}

static inline void evrec_close(struct evrec *e)
{
	evrec_correlator_free(e->correlator);
	if (e->b != NULL) {
		evrec_recorder_free(e->recorder);
		evrec_watch_free(e->watch);
		evrec_broadcaster_free(e->b);
	}
}

/* Records an event about `prepared` or about `object`; the other of the two is NULL. */
static inline void record(struct evrec *e, const evrec_prepared_ref *prepared, const evrec_reference *object,
                          evrec_str message)
{
	const evrec_emit what = {
		.object = prepared,
		.regarding = object,
		.type = TYPE,
		.reason = REASON,
		.note = message,
		.timestamp = EVREC_UNSET,
	};

	if (evrec_recorder_emit(e->recorder, &what, NULL) != 0) {
		die("an event was refused");
	}
}

/* Reads the clock for each event, as client-go's EventCorrelate does. */
static inline void correlate(struct evrec *e, const evrec_fields *event)
{
	evrec_correlation result;

	if (evrec_correlator_correlate(e->correlator, event, evrec_clock_now(evrec_clock_real()), &result) != 0) {
		die("an event was refused");
	}
	e->skipped += result.skip;
	e->patched += result.patch;
	e->created += !result.skip && !result.patch;
}

static inline double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Runs batches until they had at least `events` events and took at least `seconds` of CPU time. Returns the number of
 * events, and their CPU seconds in *spent.
 */
static inline size_t run(void (*batch)(void *ctx), void *ctx, size_t events, double seconds, double *spent)
{
	const double started = cpu_seconds();
	size_t done = 0;

	do {
		batch(ctx);
		done += BATCH;
		*spent = cpu_seconds() - started;
	} while (done < events || *spent < seconds);
	return done;
}

/*
 * Runs as many batches as `amount` says: a number of events; or of milliseconds ("80ms"), after a warm-up that takes at
 * least half as long and has at least `different` events, the workload's number of different events. Returns the number
 * of events, and their CPU seconds in *spent.
 */
static inline size_t measure(void (*batch)(void *ctx), void *ctx, const char *amount, size_t different, double *spent)
{
	char *unit;
	const unsigned long long n = strtoull(amount, &unit, 10);

	if (strcmp(unit, "ms") != 0) {
		return run(batch, ctx, n, 0, spent);
	}
	(void)run(batch, ctx, different, (double)n / 2000, spent);
	return run(batch, ctx, 0, (double)n / 1000, spent);
}

#endif
