/*
 * write.h - what a lane puts into its outbox: one event with a count, to be created or patched. The outbox sees it as
 * an item, the transports as a request. Whoever holds a write owns it; the functions lock nothing.
 */
#ifndef EVREC_WRITE_H
#define EVREC_WRITE_H

#include "deliver/spooler.h"
#include "deliver/transport.h"

#pragma GCC visibility push(hidden)

/* Items made from a const struct observed (correlate/observed.h). */
extern const struct outbox_ops write_ops;

/* A full outbox drops others first. */
static inline bool write_is_important(const evrec_fields *event)
{
	return str_eq(event->type, EVREC_STR("Warning"));
}

/* How a spool keeps them: as the event's JSON, core/v1, which has all that a request needs. */
extern const struct spool_codec write_codec;

/* An encode_func. */
bool write_encode(const void *item, enum body body, struct request *request);

/* The event as it would be written now, to be created or whole: borrowed from the item, */
evrec_fields write_fields(const void *item, enum body body);
/* or the caller's; NULL: no memory. */
evrec_event *write_event(const void *item, enum body body);

#pragma GCC visibility pop

#endif
