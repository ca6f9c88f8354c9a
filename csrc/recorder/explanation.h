/*
 * explanation.h - the suppressed events of a broadcaster's sinks, as bytes (share/explained.h), from which an
 * explanation is made, in this process or in another one that shares the sinks.
 */
#ifndef EVREC_EXPLANATION_H
#define EVREC_EXPLANATION_H

#include "recorder/hub.h"

#pragma GCC visibility push(hidden)

/*
 * Appends the events of an object (NULL: of all objects) that the sinks of this process have suppressed. Without the
 * lock.
 */
void explanation_write(struct hub *hub, const evrec_reference *object, struct buf *out);

#pragma GCC visibility pop

#endif
