/*
 * fake_write.h - the payload of an outbox's entries in tests: a name and a count, in place of an event. Its draft is a
 * struct fake_write too. Folding keeps the later count, as an event's series does.
 */
#ifndef EVREC_UNIT_FAKE_WRITE_H
#define EVREC_UNIT_FAKE_WRITE_H

#include "as_kubernetes.h"
#include "unit.h"

#include "sink/write.h"

struct fake_write {
	char name[64]; /* "x/n1" is in the namespace "x"; without a slash the namespace is "shop" */
	unsigned count;
	unsigned size; /* bytes that the outbox counts for it */
	bool important;
	uint32_t base;    /* of an adoption */
	unsigned on_time; /* how often it was told that its time has come */
	unsigned id;      /* for the test */
};

/* State of all fake writes of a test program; global, because the functions of struct outbox_ops have no context. */
struct fake_writes {
	long alive;       /* made and not freed yet; read and written atomically if threads run */
	unsigned renamed; /* the last rename made the name "renamed-<renamed>" */
	bool no_memory;   /* every function that allocates fails */
	void (*on_time)(const struct fake_write *item); /* the time of a deferred one has come; NULL: nobody asks */
};

extern struct fake_writes fake_writes;

/* Before a test. If an earlier test failed, its writes are left: they do not count as alive any more. */
void fake_writes_begin(void);

extern const struct outbox_ops fake_write_ops;

/* Makes {"name":"n1","count":1} in the namespace "shop", as an encode function of a sink. */
bool fake_write_encode(const void *item, enum body body, enum evrec_api api, enum reader reader,
                       struct encoded *request);

/* A spool's text of a fake write, "n1 1 300 1": name, count, size, important. */
extern const struct spool_codec fake_write_codec;
/* Likewise; one occurrence of each write is sure (struct spool_changes). */
extern const struct spool_codec fake_write_sure_codec;

/* The `after` of a spooler that writes rows at the end alone, and of one that writes them after a second. */
#define SPOOL_AT_END INT64_MAX
#define SPOOL_AFTER EVREC_SECOND

bool fake_write_serialize(const void *item, struct buf *out);
void *fake_write_parse(evrec_str serialized, bool *important);

/* A copy of `draft` on the heap, owned by the caller; NULL without memory. */
void *fake_write_make(const void *draft);

/* Limits of `max_pending` writes, none of which expires. */
evrec_limits limits_without_age(size_t max_pending);

/* An outbox for fake writes with these limits. The caller owns it. NULL without memory. */
struct outbox *fake_write_outbox(size_t max_pending);

/*
 * Submits an occurrence of write `id`, named "n<id>", at time 0: with count 1 to be created, otherwise to be patched.
 * False if the outbox dropped it.
 */
bool fake_write_submit(struct outbox *ob, uint64_t id, unsigned count);
/* Submits it to be deferred for an hour of CLOCK_MONOTONIC. */
bool fake_write_defer(struct outbox *ob, uint64_t id, unsigned count);

/* How many writes were brought to it (outbox_bring) since the last call. */
unsigned fake_write_count_brought(struct outbox *ob);

/* Bytes that an outbox counts for an entry beside its fake write's `size`. */
size_t outbox_entry_bytes(void);

/* Fails the test unless submitted = created + patched + coalesced + counted + pending + spooled + dropped. */
void outbox_check_equation(struct outbox *ob);

#endif
