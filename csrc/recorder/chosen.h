/*
 * chosen.h - what the functions of a sink's correlator (evrec_correlator_options) have chosen for one event, asked before
 * a lock is taken. A correlator under the lock is given functions that repeat it.
 */
#ifndef EVREC_CHOSEN_H
#define EVREC_CHOSEN_H

#include "base/base.h"
#include "sink/fingerprint.h"

#pragma GCC visibility push(hidden)

enum choice { CHOICE_NONE, CHOICE_FAILED, CHOICE_MADE };

/* All zero: nothing was asked. */
struct chosen {
	enum choice keys, message, spam_key;
	struct buf aggregate_key, local_key, text, spam;
};

/* Asks those functions that are set. False: no memory. */
bool chosen_ask(struct chosen *chosen, const evrec_correlator_options *functions, const evrec_fields *event);
void chosen_free(struct chosen *chosen);
/*
 * Replaces the functions that are set by others, which repeat **from at the time of the call, or choose the default if
 * *from is NULL. `from` must outlive the correlator.
 */
void chosen_replace(evrec_correlator_options *options, const struct chosen **from);

#pragma GCC visibility pop

#endif
