/*
 * fit.h - makes events in the new style pass the API server's validation (of events.k8s.io/v1, and of core/v1 events
 * with an event time). Pure. Any thread.
 */
#ifndef EVREC_FIT_H
#define EVREC_FIT_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* The most bytes that the API server takes. */
#define FIT_NOTE_MAX 1024
#define FIT_FIELD_MAX 128 /* reason, action, reporting instance */

/* Memory for the texts that had to be changed; reused from call to call. All zero at first. */
struct fit {
	struct buf note, reason, action, instance;
};
void fit_free(struct fit *fit);

/*
 * Makes *event fit: an unset action becomes the reason; an unset instance `<controller>-<host_name>`; note, reason and
 * action are cut between two characters, with CUT_MARK; a long instance is shortened so that two of them stay different.
 * The changed fields borrow from `fit` until its next use. 0; EVREC_ENOMEM; EVREC_EINVALID, with a message, if no change
 * could make it fit: its controller is no qualified name, its type is neither "Normal" nor "Warning", or its related
 * object is in a namespace while regarding is in none.
 */
int fit_event(struct fit *fit, evrec_fields *event, evrec_str host_name, evrec_error *err);

#pragma GCC visibility pop

#endif
