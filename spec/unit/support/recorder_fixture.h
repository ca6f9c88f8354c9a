/*
 * recorder_fixture.h - a broadcaster under a fake clock, a recorder, and a sink that answers as the test tells it to and
 * remembers the last event that it got.
 */
#ifndef EVREC_UNIT_RECORDER_FIXTURE_H
#define EVREC_UNIT_RECORDER_FIXTURE_H

#include "stats_invariants.h"

/* Allocated by setup and freed by teardown, with all that it points to; a test that frees `b` sets it to NULL. */
struct recorder_fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_sink *sink;
	int status;          /* HTTP status of the sink's next answers */
	int64_t retry_after; /* of its next answers */
	unsigned creates, patches;
	int32_t last_count;
	char last_note[64], last_why[32], last_error[32], last_patch[128], last_version[16], last_name[64];
	unsigned drops, errors; /* calls of on_drop and on_error */
};

#define RECORDER_TEST(name) cmocka_unit_test_setup_teardown(name, recorder_fixture_setup, recorder_fixture_teardown)

int recorder_fixture_setup(void **state);
int recorder_fixture_teardown(void **state);

/* The functions of such a sink; their context is a struct recorder_fixture. */
extern const evrec_sink_ops recorder_fixture_sink_ops;

/* Starts recording to the fixture's sink. The caller frees the watch. */
evrec_watch *recorder_fixture_start(struct recorder_fixture *f);

/* Records a Normal event of the pod shop/`object`. Returns the code of evrec_recorder_emit. */
int recorder_fixture_record(struct recorder_fixture *f, const char *object, const char *reason, const char *note);

#endif
