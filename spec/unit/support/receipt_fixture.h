/*
 * receipt_fixture.h - a sink pipeline under a fake clock to which a test records on behalf of others. It keeps count of
 * what was settled: each occurrence once.
 */
#ifndef EVREC_UNIT_RECEIPT_FIXTURE_H
#define EVREC_UNIT_RECEIPT_FIXTURE_H

#include "unit.h"

#include "recorder/pipeline.h"

#define RECEIPT_SOURCES 3
#define RECEIPT_NODES 16

struct receipt_fixture {
	evrec_clock *clock;
	struct pipeline *pipeline; /* NULL: no memory */
	struct pipeline_listener listener;
	struct keys keys;
	int status;             /* HTTP status of all answers; 0: none, the request was not sent */
	const char *controller; /* of all events; NULL: a good one */
	uint64_t *random;       /* not NULL: they are random */
	unsigned open[RECEIPT_SOURCES][RECEIPT_NODES]; /* occurrences that were recorded and not settled */
	uint64_t settled[SETTLED_DROPPED], dropped[EVREC_CAUSES];
	int32_t last_count; /* of the last event that was written */
	char last_name[64];
	unsigned creates;
	char error[256]; /* the last */
};

/* Options of a sink without a thread. */
evrec_sink_options receipt_sink_options(void);
/* Both options may be NULL. `f` is all zero, but for `listener`, `status` and `random`, which may be set. */
void receipt_fixture_open(struct receipt_fixture *f, const evrec_sink_options *sink,
                          const evrec_correlator_options *correlator);
/* Records an event of the pod `object` with this note. */
void receipt_record(struct receipt_fixture *f, const char *object, const char *note, struct receipt_id receipt);
/* Moves the clock, and polls. */
void receipt_advance(struct receipt_fixture *f, int64_t ns);
/* How many occurrences are not settled. */
unsigned receipt_open(const struct receipt_fixture *f);
/* Ends the pipeline. All is settled, and as its counters say if each occurrence had a receipt. */
void receipt_end(struct receipt_fixture *f);
/* After that, or without. */
void receipt_fixture_free(struct receipt_fixture *f);

#endif
