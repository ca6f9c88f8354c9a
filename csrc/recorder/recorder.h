/* recorder.h - the struct of a recorder, and the list of a broadcaster's recorders. One thread at a time. */
#ifndef EVREC_RECORDER_H
#define EVREC_RECORDER_H

#include "recorder/broadcaster.h"

#pragma GCC visibility push(hidden)

struct evrec_recorder {
	unsigned refs; /* the user's, and one of every prepared event */
	evrec_broadcaster *b;
	evrec_recorder *next, *prev;   /* the recorders of `b`, in the order in which they were made */
	evrec_event *model;            /* holds the options; the fields below borrow from it */
	evrec_map labels, annotations; /* of all events */
	evrec_fields event;            /* the one being recorded; fields that no recording call sets stay as they are */
	struct keys keys;              /* the event's */
	uint64_t object;               /* the number of the prepared reference with the keys' parts; 0: unknown */
	struct buf note;               /* the event's, if it had to be cleaned or cut */
	struct cardinality reasons, actions;
};

void recorder_unref(evrec_recorder *r);

/*
 * Makes an event from *emit and the recorder's options: checked, its message cleaned and cut, without a name, and with
 * undefined timestamps. NULL, with *err set: EVREC_EINVALID or EVREC_ENOMEM.
 */
evrec_event *recorder_make_event(const evrec_recorder *r, const evrec_emit *emit, evrec_error *err);

/* Add a new recorder to the list of its broadcaster, which counts its component, and remove it before it is freed. */
void recorders_add(evrec_recorder *r);
void recorders_remove(evrec_recorder *r);

/* Counts a value of a field: true if it is new. If there are too many, the next recorders_tell reports it. */
bool recorder_count(evrec_recorder *r, struct cardinality *field, evrec_str value);

#pragma GCC visibility pop

#endif
