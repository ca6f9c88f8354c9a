#include "event/notes.h"

#include <pthread.h>
#include <stdatomic.h>

struct notes {
	bool occurrences, suppressions;
	atomic_bool waiting;
	pthread_mutex_t lock;
	/* With the lock held: */
	struct buf queued;
	uint64_t lost;
	int64_t lost_at; /* the time of the last one */
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

struct notes *notes_new(bool occurrences, bool suppressions)
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

	(void)pthread_mutex_lock(&notes->lock);
	if (size > NOTES_MAX - notes->queued.len || !put(&notes->queued, note)) {
		notes->lost += note->count;
		notes->lost_at = note->time;
	}
	(void)pthread_mutex_unlock(&notes->lock);
	return !atomic_exchange(&notes->waiting, true);
}

bool notes_wait(const struct notes *notes)
{
	return atomic_load(&notes->waiting);
}

/* Without memory they are told with later notes. */
static void put_lost(struct notes *notes, struct buf *b)
{
	const struct note note = {
		.suppressed = true,
		.time = notes->lost_at,
		.count = notes->lost,
		.texts = { [NOTE_STAGE] = EVREC_STR("lost") },
	};

	if (notes->lost != 0 && put(b, &note)) {
		notes->lost = 0;
	}
}

/* All that was taken is written: takes what has been queued since. */
static void swap(struct notes *notes)
{
	struct buf empty = notes->taken;

	buf_clear(&empty);
	notes->written = notes->next = 0;
	(void)pthread_mutex_lock(&notes->lock);
	put_lost(notes, &notes->queued);
	notes->taken = notes->queued;
	notes->queued = empty;
	atomic_store(&notes->waiting, notes->taken.len != 0);
	(void)pthread_mutex_unlock(&notes->lock);
}

bool notes_next(struct notes *notes, struct note *note)
{
	struct head head;
	const char *p;

	if (notes->written == notes->taken.len) {
		if (!notes_wait(notes)) {
			return false;
		}
		swap(notes);
	}
	if (notes->next == notes->taken.len) {
		return false;
	}
	p = notes->taken.data + notes->next;
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	*note = (struct note){ .suppressed = head.suppressed, .time = head.time, .count = head.count };
	for (size_t i = 0; i < NOTE_TEXTS; i++) {
		note->texts[i] = (evrec_str){ p, head.lens[i] };
		p += head.lens[i];
	}
	notes->next = (size_t)(p - notes->taken.data);
	return true;
}

void notes_written(struct notes *notes)
{
	notes->written = notes->next;
	if (notes->written == notes->taken.len) {
		swap(notes);
	}
}

void notes_rewind(struct notes *notes)
{
	notes->next = notes->written;
}
