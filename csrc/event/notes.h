/*
 * notes.h - the notes that a sink may keep beside events: the time of each occurrence, and which occurrences were
 * suppressed, and why. A queue takes such notes on the recording thread; a protocol writes them on its own.
 *
 * The queue is two lists of blocks: one that is filled, and one that is written. The sum of their bytes is bounded, and the
 * second list takes over the first one's blocks once its own are written. So a recording call costs a short lock and some
 * copied bytes, however many notes wait, and no I/O.
 */
#ifndef EVREC_EVENT_NOTES_H
#define EVREC_EVENT_NOTES_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define NOTES_MIN (1U << 20) /* the least bound, in bytes */
#define NOTES_MESSAGE_MAX 200

/* Of an occurrence, the namespace and name are those of its event. */
enum note_text {
	NOTE_NS,
	NOTE_NAME,
	/* Of a suppression alone, whose namespace and name are those of the object: */
	NOTE_KIND,
	NOTE_API_VERSION,
	NOTE_UID,
	NOTE_TYPE,
	NOTE_REASON,
	NOTE_STAGE,
	NOTE_CAUSE,
	NOTE_KEY, /* that a callback chose, of the aggregate or of the tokens */
	NOTE_MESSAGE,
	/* The event's source, or if that is unset its reporting controller and instance: */
	NOTE_COMPONENT,
	NOTE_HOST,
	NOTE_TEXTS
};

struct note {
	bool suppressed; /* else an occurrence */
	int64_t time;    /* ns since 1970 */
	uint64_t count;
	evrec_str texts[NOTE_TEXTS]; /* borrowed */
};

struct notes;

/* A queue that takes these kinds of notes, of which at most `max` bytes wait. NULL: no memory. */
struct notes *notes_new(bool occurrences, bool suppressions, size_t max);
void notes_free(struct notes *notes); /* NULL is fine */
/* Any thread. */
bool notes_want_occurrences(const struct notes *notes);
bool notes_want_suppressions(const struct notes *notes);

/*
 * Copies a note to the end of the queue. True if the queue was empty: the writer may be asleep. A note for which there
 * is no room or no memory is counted as lost. Any thread.
 */
bool notes_add(struct notes *notes, const struct note *note);
/* Whether notes wait to be written. Any thread. */
bool notes_wait(const struct notes *notes);
/* The number of lost notes: there was no room or no memory for them, or they were given up. Any thread. */
uint64_t notes_lost(const struct notes *notes);
/* True, once, after notes have begun to be lost for want of room or memory: the caller reports it. Any thread. */
bool notes_take_alarm(struct notes *notes);

/*
 * The next note to be written, valid until notes_written or notes_rewind. False: there is none. Notes that were lost come
 * as one suppression of the stage "lost" for each kind, with their number, the time of the last one, and the kind as its
 * cause: "occurrence" or "suppression". One thread writes.
 */
bool notes_next(struct notes *notes, struct note *note);
/* The notes that notes_next has given, since the last call of this function or of notes_rewind, are written. */
void notes_written(struct notes *notes);
/* The notes since then were not written: notes_next returns them again. */
void notes_rewind(struct notes *notes);
/* As notes_rewind; in addition all waiting notes count as lost until they are written after all. */
void notes_give_up(struct notes *notes);

#pragma GCC visibility pop

#endif
