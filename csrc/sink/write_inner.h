/*
 * write_inner.h - a write, for the files that implement it: write.c is what an outbox calls, write_codec.c what a spool does.
 */
#ifndef EVREC_WRITE_INNER_H
#define EVREC_WRITE_INNER_H

#include "event/event.h"
#include "event/packed.h"
#include "sink/write.h"

#pragma GCC visibility push(hidden)

/* Strings that replace the event's own. */
struct changed {
	struct buf name; /* empty: the event's */
	struct buf note; /* if has_note; else the event's */
	bool has_note;
};

/* After the struct lies the packed event as it was first observed; the members are the later changes. */
struct write {
	struct changed *changed; /* NULL: neither name nor note has changed, as in most writes */
	int64_t last;
	uint32_t version; /* of its name and note */
	int32_t count;
	int32_t sure;  /* see struct write_draft */
	uint32_t base; /* see struct write_draft */
	bool new_style, finishes;
	bool finished; /* the write became due as the last one of its series */
};

/* An event in the new style has an event time, and no count except that of its series. */
bool write_is_new_style(const evrec_fields *event);
static inline evrec_packed *write_packed(const struct write *w)
{
	return (evrec_packed *)(uintptr_t)(w + 1);
}

evrec_str write_note(const struct write *w);
/* The name that replaces the event's; empty: none does. */
evrec_str write_new_name(const struct write *w);
/* Replace strings of the event. False: no memory, and nothing has changed. */
bool write_set_new_name(struct write *w, evrec_str name);
bool write_set_new_note(struct write *w, evrec_str note);

#pragma GCC visibility pop

#endif
