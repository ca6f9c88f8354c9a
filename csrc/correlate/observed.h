/*
 * observed.h - a correlator's result: the event as it was given, and beside it the few fields that the correlator
 * changed. A plain value that borrows. Not copying the whole event saves 66 of 1,290 instructions of a duplicate.
 */
#ifndef EVREC_OBSERVED_H
#define EVREC_OBSERVED_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct observed {
	const evrec_fields *event; /* as it was given */
	/* These take the place of the event's fields: */
	evrec_str name, resource_version, note;
	int64_t first, last;
	int32_t count;
	int32_t sure; /* of these, what this process or an earlier owner has recorded itself; 0 of a series */
	/* Handles of the event's entries: */
	uint64_t handle;    /* in the event log */
	uint64_t aggregate; /* in the aggregator */
	uint64_t bucket;    /* in the spam filter; 0: the occurrence needed no token */
	bool patch, skip;
	bool combined_note; /* the note is the event's own after an ASCII prefix: valid UTF-8, but longer */
	bool repeated;      /* another process has recorded the occurrence again, which is counted already */
	enum evrec_why why;
	/* Of a series, or of a correlator with a min_interval: when the occurrence is to be written; 0: at once. */
	int64_t due;
	/* Of a series alone: */
	bool finishes; /* if nothing follows until `due`, the series is finished then */
	uint32_t base; /* occurrences that earlier processes counted: the event has base + count */
	bool merged;   /* the note differs from the one that the series had, and takes its place */
	bool again;    /* an earlier process may have created the event under this name */
};

/* Sets *o to the event, with nothing changed yet. */
static inline void observed_init(struct observed *o, const evrec_fields *event)
{
	o->event = event;
	o->name = event->name;
	o->resource_version = event->resource_version;
	o->note = event->note;
	o->first = event->first;
	o->last = event->last;
	o->count = event->count;
	o->sure = 0;
	o->aggregate = o->bucket = 0;
	o->repeated = o->combined_note = false;
}

/* Sets *fields to the whole event, with its changes. */
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
