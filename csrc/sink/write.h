/*
 * write.h - one event with a count, to be created or patched: the item of outboxes, which protocols encode. A write has
 * one owner at a time; the functions take no lock.
 */
#ifndef EVREC_WRITE_H
#define EVREC_WRITE_H

#include "event/event.h"
#include "event/key.h"
#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

/* The forms of an encoded write: an event to be created, a patch, or the whole event in its present state. */
enum body { BODY_CREATE, BODY_PATCH, BODY_WHOLE };
struct encoded {
	char *ns, *name; /* of the event, not escaped */
	char *body;      /* JSON */
	size_t body_len;
	enum evrec_api api; /* the API of its form */
};
/* The reader of the bytes: an API server takes the old style only in core/v1, and series without a state. */
enum reader { READER_SERVER, READER_ANY };
/*
 * Encodes an item in flight, without a lock, in this API, or in core/v1 if the reader takes only that. False: no
 * memory. The result is freed with encoded_free.
 */
typedef bool encode_func(const void *item, enum body body, enum evrec_api api, enum reader reader,
                         struct encoded *encoded);
void encoded_free(struct encoded *encoded);

/* One occurrence of an event, as it is given to outbox_submit. Borrowed. */
struct write_draft {
	/*
	 * The event is written in the new style, that of events.k8s.io/v1, in either API: with an event time and a series of
	 * `base` + `count` occurrences, and without source, timestamps and count. Its fields fit (event/fit.h).
	 */
	bool new_style;
	bool finished; /* its series is finished */
	bool finishes; /* when the deferred write becomes due, its series is finished */
	uint32_t base; /* occurrences that earlier processes wrote; 0: the write keeps its base */
	evrec_str note;
	bool note_changes; /* the write takes this note, as the notes of its occurrences differ (an aggregate) */
	int64_t last;
	int32_t count;
	int32_t sure; /* how many of the count owners of the share have recorded themselves; 0: none, or not known */
	/*
	 * Sets *fields to the whole event, if the occurrence makes a new write; an occurrence that folds needs no copy.
	 */
	void (*get_event)(const void *source, evrec_fields *event);
	const void *source;
	const struct keys *keys; /* the event's own, except for the note; NULL: there are none */
};

/* Items made from a const struct write_draft. */
extern const struct outbox_ops write_ops;

/* Whether a full outbox drops other writes first. */
static inline bool write_is_important(const evrec_fields *event)
{
	return str_eq(event->type, EVREC_STR("Warning"));
}

/* A spool keeps the event's JSON, core/v1, from which the write is made again. */
extern const struct spool_codec write_codec;

/* An encode_func. */
bool write_encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *encoded);

/* The event in its present state, for BODY_CREATE or BODY_WHOLE; borrowed from the item. */
evrec_fields write_fields(const void *item, enum body body);
/* The `sure` of the draft that was folded in last. */
int32_t write_sure(const void *item);
/*
 * Sets *view to the event of write_fields as an evrec_event, which is not counted, and for one thread
 * (evrec_event.unread); borrowed likewise.
 */
void write_view(const void *item, enum body body, evrec_event *view);
/* Makes an item on the heap, outside of an outbox. NULL: no memory. */
void *write_new(const struct write_draft *draft);
void write_free(void *item); /* NULL is fine */

#pragma GCC visibility pop

#endif
