/* note_fixture.h - notes of a store, whose texts are borrowed. */
#ifndef EVREC_UNIT_NOTE_FIXTURE_H
#define EVREC_UNIT_NOTE_FIXTURE_H

#include "event/notes.h"

/* An occurrence at `time` of the event shop/`name`. */
struct note note_of_occurrence(const char *name, int64_t time);
/* `count` occurrences about the pod shop/`object` that had no token, the last one at `time`. */
struct note note_of_suppression(const char *object, const char *reason, int64_t time, uint64_t count);

#endif
