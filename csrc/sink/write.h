/*
 * write.h - one event with a count, to be created or patched: the item of the outboxes, and what protocols encode.
 * Whoever holds a write owns it; the functions lock nothing.
 */
#ifndef EVREC_WRITE_H
#define EVREC_WRITE_H

#include "event/event.h"
#include "event/key.h"
#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

/* A write as bytes: an event to be created, the patch of one, or the whole event as it is by now. */
enum body { BODY_CREATE, BODY_PATCH, BODY_WHOLE };
struct encoded {
	char *ns, *name; /* of the event, not escaped */
	char *body;      /* JSON */
	size_t body_len;
	enum evrec_api api; /* that it has the form of */
};
/* Who reads the bytes: an API server takes the old style in core/v1 alone, and no series has a state there. */
enum reader { READER_SERVER, READER_ANY };
/*
 * Makes bytes of an item in flight, without a lock, in this API unless its reader takes another one alone. False: no
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
	bool finishes; /* if the write is deferred and its time comes, its series is finished */
	uint32_t base; /* occurrences that earlier processes wrote; 0: as the write has it */
	evrec_str note;
	bool note_changes; /* the write takes this note: its notes differ, as those of an aggregate do */
	int64_t last;
	int32_t count;
	int32_t sure; /* of the count: what no other process records again if this one is killed; 0: that is not known */
	/* Gives the whole event, if the occurrence makes a new write; an occurrence that folds costs no copy. */
	void (*get_event)(const void *source, evrec_fields *event);
	const void *source;
	const struct keys *keys; /* the event's own, but for the note; NULL: they are not at hand */
};

/* Items made from a const struct write_draft. */
extern const struct outbox_ops write_ops;

/* A full outbox drops other writes first. */
static inline bool write_is_important(const evrec_fields *event)
{
	return str_eq(event->type, EVREC_STR("Warning"));
}

/* A spool keeps the event's JSON, core/v1, from which the write is made again. */
extern const struct spool_codec write_codec;

/* An encode_func. */
bool write_encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *encoded);

/* The event as it would be written now, for BODY_CREATE or BODY_WHOLE; borrowed from the item. */
evrec_fields write_fields(const void *item, enum body body);
/* Of the draft that was folded in last. */
int32_t write_sure(const void *item);
/* Sets *view to the same as an event, which is not counted, and for one thread (evrec_event.unread); borrowed likewise. */
void write_view(const void *item, enum body body, evrec_event *view);
/* Items that no outbox has, on the heap. NULL: no memory. */
void *write_new(const struct write_draft *draft);
void write_free(void *item); /* NULL is fine */

#pragma GCC visibility pop

#endif
