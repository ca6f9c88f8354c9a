#include "event/notes.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOST "lost"               /* the stage of a note that says how many were lost */
#define BLOCK ((size_t)32 * 1024) /* bytes of a block */

/* Lost notes of one kind that no note in the queue counts yet. */
struct lost {
	uint64_t count;
	int64_t time; /* of the last one */
};

/* Notes, one after the other. A longer queue has more blocks: a recording call never copies the notes that wait. */
struct block {
	struct block *next; /* NULL: it is the last one of its queue */
	size_t len, room;   /* of `bytes` */
	char bytes[];
};

/* Between two notes. */
struct place {
	struct block *block; /* NULL: there are no notes */
	size_t at;
};

struct notes {
	bool occurrences, suppressions;
	size_t max;
	atomic_bool waiting;
	atomic_bool alarm;              /* some were lost, which is not reported yet */
	atomic_uint_fast64_t lost_ever; /* for want of room or memory */
	atomic_uint_fast64_t given_up;
	pthread_mutex_t lock;
	/* With the lock held: */
	struct block *queued, *last;  /* the blocks that are filled, and the last of them */
	size_t queued_len, taken_len; /* bytes of the notes in `queued`, and of those that were in `taken` at first */
	uint64_t queued_count;        /* of the notes in `queued` */
	struct lost occurrences_lost, suppressions_lost;
	/* Of the thread that writes: */
	struct block *taken; /* the blocks that are written, from that of `written` on */
	struct place written, next;
};

/* A note in a block, followed by the bytes of its texts. */
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

/* Frees the blocks before `end`. */
static void free_blocks(struct block *first, const struct block *end)
{
	while (first != end) {
		struct block *next = first->next;

		mem_free(first);
		first = next;
	}
}

void notes_free(struct notes *notes)
{
	if (notes != NULL) {
		(void)pthread_mutex_destroy(&notes->lock);
		free_blocks(notes->queued, NULL);
		free_blocks(notes->taken, NULL);
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

/* The last block of the queue, with room for `size` more bytes. NULL: no memory. */
static struct block *block_with_room(struct notes *notes, size_t size)
{
	const size_t room = size > BLOCK ? size : BLOCK;
	struct block *block = notes->last;

	if (block != NULL && size <= block->room - block->len) {
		return block;
	}
	block = mem_alloc(sizeof(*block) + room);
	if (block == NULL) {
		return NULL;
	}
	block->next = NULL;
	block->len = 0;
	block->room = room;
	*(notes->last == NULL ? &notes->queued : &notes->last->next) = block;
	notes->last = block;
	return block;
}

/* With the lock held. False: no memory; then the queue is as it was. */
static bool put(struct notes *notes, const struct note *note)
{
	const size_t size = size_of(note);
	struct block *block = block_with_room(notes, size);
	struct head head;
	char *p;

	if (block == NULL) {
		return false;
	}
	memset(&head, 0, sizeof(head));
	head.time = note->time;
	head.count = note->count;
	head.suppressed = note->suppressed;
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		head.lens[i] = (uint32_t)note->texts[i].len;
	}
	p = block->bytes + block->len;
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		if (note->texts[i].len != 0) {
			memcpy(p, note->texts[i].data, note->texts[i].len);
		}
		p += note->texts[i].len;
	}
	block->len += size;
	notes->queued_len += size;
	notes->queued_count += note->count;
	return true;
}

bool notes_add(struct notes *notes, const struct note *note)
{
	const size_t size = size_of(note);
	struct lost *lost = note->suppressed ? &notes->suppressions_lost : &notes->occurrences_lost;
	size_t waiting;

	(void)pthread_mutex_lock(&notes->lock);
	/* The note of lost ones may exceed the bound. */
	waiting = notes->taken_len + notes->queued_len;
	if (waiting > notes->max || size > notes->max - waiting || !put(notes, note)) {
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

/* Without memory they are counted with later notes. */
static void put_lost(struct notes *notes, struct lost *lost, evrec_str kind)
{
	const struct note note = {
		.suppressed = true,
		.time = lost->time,
		.count = lost->count,
		.texts = { [NOTE_STAGE] = EVREC_STR(LOST), [NOTE_CAUSE] = kind },
	};

	if (lost->count != 0 && put(notes, &note)) {
		lost->count = 0;
	}
}

/* All that was taken is written: takes what has been queued since. */
static void take(struct notes *notes)
{
	free_blocks(notes->taken, NULL);
	(void)pthread_mutex_lock(&notes->lock);
	put_lost(notes, &notes->occurrences_lost, EVREC_STR("occurrence"));
	put_lost(notes, &notes->suppressions_lost, EVREC_STR("suppression"));
	notes->taken = notes->queued;
	notes->taken_len = notes->queued_len;
	notes->queued = notes->last = NULL;
	notes->queued_len = 0;
	notes->queued_count = 0;
	atomic_store(&notes->waiting, notes->taken != NULL);
	(void)pthread_mutex_unlock(&notes->lock);
	notes->written = notes->next = (struct place){ notes->taken, 0 };
}

/* Reads the note at a place before the end. Returns the place behind the note. */
static struct place read_note(struct place from, struct note *note)
{
	struct head head;
	const char *p;

	if (from.at == from.block->len) {
		from = (struct place){ from.block->next, 0 };
	}
	p = from.block->bytes + from.at;
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	*note = (struct note){ .suppressed = head.suppressed, .time = head.time, .count = head.count };
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		note->texts[i] = (evrec_str){ p, head.lens[i] };
		p += head.lens[i];
	}
	from.at = (size_t)(p - from.block->bytes);
	return from;
}

static bool is_end(struct place place)
{
	return place.block == NULL || (place.at == place.block->len && place.block->next == NULL);
}

bool notes_next(struct notes *notes, struct note *note)
{
	if (is_end(notes->written)) {
		if (!notes_wait(notes)) {
			return false;
		}
		take(notes);
	}
	if (is_end(notes->next)) {
		return false;
	}
	notes->next = read_note(notes->next, note);
	return true;
}

void notes_written(struct notes *notes)
{
	free_blocks(notes->taken, notes->next.block);
	notes->taken = notes->next.block;
	notes->written = notes->next;
	atomic_store(&notes->given_up, 0);
	if (is_end(notes->written)) {
		take(notes);
	}
}

void notes_rewind(struct notes *notes)
{
	notes->next = notes->written;
}

/* The number of notes from a place on, without notes about lost ones. */
static uint64_t count_from(struct place place)
{
	uint64_t count = 0;
	struct note note;

	while (!is_end(place)) {
		place = read_note(place, &note);
		count += str_eq(note.texts[NOTE_STAGE], EVREC_STR(LOST)) ? 0 : note.count;
	}
	return count;
}

void notes_give_up(struct notes *notes)
{
	uint64_t count;

	notes_rewind(notes);
	count = count_from(notes->written);
	(void)pthread_mutex_lock(&notes->lock);
	count += notes->queued_count;
	(void)pthread_mutex_unlock(&notes->lock);
	atomic_store(&notes->given_up, count);
}
