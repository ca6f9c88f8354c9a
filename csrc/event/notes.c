#include "event/notes.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOST "lost"    /* the stage of a note that says how many were lost */
#define KEPT NOTES_MIN /* bytes of an empty buffer's memory; a larger one is freed */

/* Lost notes of one kind that no note in the queue tells yet. */
struct lost {
	uint64_t count;
	int64_t time; /* of the last one */
};

struct notes {
	bool occurrences, suppressions;
	size_t max;
	atomic_bool waiting;
	atomic_bool alarm;              /* some were lost, and nobody has told it */
	atomic_uint_fast64_t lost_ever; /* for want of room or memory */
	atomic_uint_fast64_t given_up;
	pthread_mutex_t lock;
	/* With the lock held: */
	struct buf queued;
	size_t taken_len;
	struct lost occurrences_lost, suppressions_lost;
	/* Of the thread that writes: */
	struct buf taken;
	size_t written, next; /* offsets in `taken` */
};

/* A note in a buffer, followed by the bytes of its texts. */
struct head {
	int64_t time;
	uint64_t count;
	uint32_t lens[NOTE_TEXTS];
	bool suppressed;
};

struct notes *notes_new(bool occurrences, bool suppressions, size_t max)
{
	struct notes *notes = mem_zalloc(sizeof(*notes));

	if (notes == NULL) {
		return NULL;
	}
	if (pthread_mutex_init(&notes->lock, NULL) != 0) {
		mem_free(notes);
		return NULL;
	}
	notes->occurrences = occurrences;
	notes->suppressions = suppressions;
	notes->max = max;
	return notes;
}

void notes_free(struct notes *notes)
{
	if (notes != NULL) {
		(void)pthread_mutex_destroy(&notes->lock);
		buf_free(&notes->queued);
		buf_free(&notes->taken);
		mem_free(notes);
	}
}

bool notes_want_occurrences(const struct notes *notes)
{
	return notes->occurrences;
}

bool notes_want_suppressions(const struct notes *notes)
{
	return notes->suppressions;
}

static size_t size_of(const struct note *note)
{
	size_t size = sizeof(struct head);

	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		size += note->texts[i].len;
	}
	return size;
}

/* False: no memory; then the buffer is as it was. */
static bool put(struct buf *b, const struct note *note)
{
	struct head head;

	if (!buf_reserve(b, size_of(note))) {
		b->failed = false;
		return false;
	}
	memset(&head, 0, sizeof(head));
	head.time = note->time;
	head.count = note->count;
	head.suppressed = note->suppressed;
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		head.lens[i] = (uint32_t)note->texts[i].len;
	}
	buf_put(b, &head, sizeof(head));
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		buf_put_str(b, note->texts[i]);
	}
	return true;
}

bool notes_add(struct notes *notes, const struct note *note)
{
	const size_t size = size_of(note);
	struct lost *lost = note->suppressed ? &notes->suppressions_lost : &notes->occurrences_lost;
	size_t waiting;

	(void)pthread_mutex_lock(&notes->lock);
	/* The note of lost ones may exceed the bound. */
	waiting = notes->taken_len + notes->queued.len;
	if (waiting > notes->max || size > notes->max - waiting || !put(&notes->queued, note)) {
		if (lost->count == 0) {
			atomic_store(&notes->alarm, true);
		}
		*lost = (struct lost){ lost->count + note->count, note->time };
		(void)atomic_fetch_add(&notes->lost_ever, note->count);
	}
	(void)pthread_mutex_unlock(&notes->lock);
	return !atomic_exchange(&notes->waiting, true);
}

bool notes_wait(const struct notes *notes)
{
	return atomic_load(&notes->waiting);
}

uint64_t notes_lost(const struct notes *notes)
{
	return atomic_load(&notes->lost_ever) + atomic_load(&notes->given_up);
}

bool notes_take_alarm(struct notes *notes)
{
	return atomic_load(&notes->alarm) && atomic_exchange(&notes->alarm, false);
}

/* Without memory they are told with later notes. */
static void put_lost(struct buf *b, struct lost *lost, evrec_str kind)
{
	const struct note note = {
		.suppressed = true,
		.time = lost->time,
		.count = lost->count,
		.texts = { [NOTE_STAGE] = EVREC_STR(LOST), [NOTE_CAUSE] = kind },
	};

	if (lost->count != 0 && put(b, &note)) {
		lost->count = 0;
	}
}

/* All that was taken is written: takes what has been queued since. */
static void swap(struct notes *notes)
{
	struct buf empty = notes->taken;

	buf_clear(&empty);
	if (empty.cap > KEPT) {
		buf_free(&empty);
	}
	notes->written = notes->next = 0;
	(void)pthread_mutex_lock(&notes->lock);
	put_lost(&notes->queued, &notes->occurrences_lost, EVREC_STR("occurrence"));
	put_lost(&notes->queued, &notes->suppressions_lost, EVREC_STR("suppression"));
	notes->taken = notes->queued;
	notes->taken_len = notes->taken.len;
	notes->queued = empty;
	atomic_store(&notes->waiting, notes->taken.len != 0);
	(void)pthread_mutex_unlock(&notes->lock);
}

/* Reads the note at an offset. Returns the next one's. */
static size_t read_note(const struct buf *b, size_t at, struct note *note)
{
	const char *p = b->data + at;
	struct head head;

	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	*note = (struct note){ .suppressed = head.suppressed, .time = head.time, .count = head.count };
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		note->texts[i] = (evrec_str){ p, head.lens[i] };
		p += head.lens[i];
	}
	return (size_t)(p - b->data);
}

bool notes_next(struct notes *notes, struct note *note)
{
	if (notes->written == notes->taken.len) {
		if (!notes_wait(notes)) {
			return false;
		}
		swap(notes);
	}
	if (notes->next == notes->taken.len) {
		return false;
	}
	notes->next = read_note(&notes->taken, notes->next, note);
	return true;
}

void notes_written(struct notes *notes)
{
	notes->written = notes->next;
	atomic_store(&notes->given_up, 0);
	if (notes->written == notes->taken.len) {
		swap(notes);
	}
}

void notes_rewind(struct notes *notes)
{
	notes->next = notes->written;
}

/* The number of notes from an offset on, without those that say how many were lost before. */
static uint64_t count_from(const struct buf *b, size_t at)
{
	uint64_t count = 0;
	struct note note;

	while (at < b->len) {
		at = read_note(b, at, &note);
		count += str_eq(note.texts[NOTE_STAGE], EVREC_STR(LOST)) ? 0 : note.count;
	}
	return count;
}

void notes_give_up(struct notes *notes)
{
	uint64_t count;

	notes_rewind(notes);
	count = count_from(&notes->taken, notes->written);
	(void)pthread_mutex_lock(&notes->lock);
	count += count_from(&notes->queued, 0);
	(void)pthread_mutex_unlock(&notes->lock);
	atomic_store(&notes->given_up, count);
}
