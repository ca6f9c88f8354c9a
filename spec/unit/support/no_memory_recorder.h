/*
 * no_memory_recorder.h - a broadcaster with a recorder for scenarios of alloc_failure.h: every call that may fail for want
 * of memory is followed by alloc_failure_check.
 */
#ifndef EVREC_UNIT_NO_MEMORY_RECORDER_H
#define EVREC_UNIT_NO_MEMORY_RECORDER_H

#include "unit.h"

/* The test owns it, zeroed at first. Members that could not be made are NULL. */
struct no_memory_recorder {
	evrec_clock *clock; /* a fake one, at T0 */
	evrec_broadcaster *b;
	evrec_recorder *r;
};

/* Makes clock, broadcaster and recorder; sets the clock of `options`. False if one of them is missing. */
bool no_memory_recorder_open(struct no_memory_recorder *f, evrec_broadcaster_options *options);

/* Starts recording to a sink. The caller frees the watch; NULL without memory. */
evrec_watch *no_memory_recorder_start(struct no_memory_recorder *f, evrec_sink *sink,
                                      const evrec_correlator_options *correlator);

/* Records an event of the pod shop/`object` with a related object, annotations and labels. Checks nothing. */
int no_memory_recorder_record(struct no_memory_recorder *f, evrec_str object, evrec_str note, evrec_error *err);

/* Frees all, also after a failed open. */
void no_memory_recorder_close(struct no_memory_recorder *f);

#endif
