/*
 * observed.h - what a correlator makes of an event: the few fields that it changes, beside the event, which is not
 * copied for that. A plain value that borrows.
 */
#ifndef EVREC_OBSERVED_H
#define EVREC_OBSERVED_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct observed {
	const evrec_fields *event; /* as it was given: these take the place of its fields */
	evrec_str name, resource_version, note;
	int64_t first, last;
	int32_t count;
	uint64_t handle;            /* the logger's entry */
	uint64_t aggregate, bucket; /* the aggregator's, and the spam filter's */
	bool patch, skip;
	enum evrec_why why;
};

/* `event` before anything has changed. */
static inline void observed_init(struct observed *o, const evrec_fields *event)
{
	o->event = event;
	o->name = event->name;
	o->resource_version = event->resource_version;
	o->note = event->note;
	o->first = event->first;
	o->last = event->last;
	o->count = event->count;
	o->aggregate = o->bucket = 0;
}

/* The whole event, changed. */
static inline void observed_fields(const struct observed *o, evrec_fields *fields)
{
	*fields = *o->event;
	fields->name = o->name;
	fields->resource_version = o->resource_version;
	fields->note = o->note;
	fields->first = o->first;
	fields->last = o->last;
	fields->count = o->count;
}

#pragma GCC visibility pop

#endif
