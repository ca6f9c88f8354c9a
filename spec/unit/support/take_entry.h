/*
 * take_entry.h - takes one entry of an outbox.
 */
#ifndef EVREC_UNIT_TAKE_ENTRY_H
#define EVREC_UNIT_TAKE_ENTRY_H

#include "outbox/outbox.h"

/* The next entry to send, in flight now; NULL: there is none. */
static inline struct entry *take_entry(struct outbox *ob, int64_t now)
{
	struct entry *entry;

	return outbox_exchange(ob, NULL, 0, &entry, 1, now) == 0 ? NULL : entry;
}

#endif
