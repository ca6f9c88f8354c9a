/*
 * write_inner.h - a write, for the files that implement it: write.c is what an outbox calls, write_codec.c what a spool does.
 */
#ifndef EVREC_WRITE_INNER_H
#define EVREC_WRITE_INNER_H

#include "event/event.h"
#include "sink/write.h"

#pragma GCC visibility push(hidden)

struct write {
	evrec_event *event; /* as first observed; what has changed since is below */
	struct buf name;    /* empty: the event's */
	struct buf note;    /* if has_note; else the event's */
	int64_t last;
	size_t size;      /* of this and the event */
	uint32_t version; /* of its name and note */
	int32_t count;
	int32_t sure;  /* see struct write_draft */
	uint32_t base; /* see struct write_draft */
	bool new_style, finishes, has_note;
	bool finished; /* its time came while it was the last write of its series */
};

/* An event in the new style has an event time, and no count beside that of its series. */
bool write_is_new_style(const evrec_fields *event);
/* Owns the event, also if there is no memory; NULL of NULL. */
struct write *write_of(evrec_event *event);
void write_free(void *item);
evrec_str write_note(const struct write *w);

#pragma GCC visibility pop

#endif
