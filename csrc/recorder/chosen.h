/*
 * chosen.h - the results of a sink's correlator functions (evrec_correlator_options) for one event, called before a
 * lock is taken. The correlator under the lock has functions that return these results.
 */
#ifndef EVREC_CHOSEN_H
#define EVREC_CHOSEN_H

#include "base/base.h"
#include "sink/fingerprint.h"

#pragma GCC visibility push(hidden)

enum choice { CHOICE_NONE, CHOICE_FAILED, CHOICE_MADE };

/* All zero: no function was called. */
struct chosen {
	enum choice keys, message, spam_key;
	struct buf aggregate_key, local_key, text, spam;
};

/* Calls the functions that are set. False: no memory. */
bool chosen_ask(struct chosen *chosen, const evrec_correlator_options *functions, const evrec_fields *event);
void chosen_free(struct chosen *chosen);
/*
 * Replaces the functions that are set by others, which return the results in **from at the time of the call, or choose
 * the default if *from is NULL. `from` must outlive the correlator.
 */
void chosen_replace(evrec_correlator_options *options, const struct chosen **from);

#pragma GCC visibility pop

#endif
