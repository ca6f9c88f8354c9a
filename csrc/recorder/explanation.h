/*
 * explanation.h - what the sinks of a broadcaster have suppressed, as bytes (share/explained.h), of which an explanation
 * is made, in this process or in another one that shares the sinks.
 */
#ifndef EVREC_EXPLANATION_H
#define EVREC_EXPLANATION_H

#include "recorder/hub.h"

#pragma GCC visibility push(hidden)

/* Appends what the sinks of this process have suppressed of an object; NULL: of all objects. Without the lock. */
void explanation_write(struct hub *hub, const evrec_reference *object, struct buf *out);

#pragma GCC visibility pop

#endif
