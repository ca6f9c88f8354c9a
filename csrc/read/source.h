/*
 * source.h - shared by the kinds of sources. lines_source.c, cluster.c and store_source.c each have a kind, whose struct
 * begins with an evrec_source, and whose readers' structs begin with an evrec_reader.
 */
#ifndef EVREC_READ_SOURCE_H
#define EVREC_READ_SOURCE_H

#include "evrec_read.h"
#include "read/filter.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct reader_ops {
	/*
	 * Waits until the reader has begun, or until `deadline` (monotonic ns). EVREC_READ_WAIT: not yet; another enum
	 * evrec_read: it has begun; or a negative enum evrec_code. NULL: a reader has begun when it is opened.
	 */
	int (*begin)(evrec_reader *reader, int64_t deadline, evrec_error *err);
	/* As evrec_reader_next. Looks for an event at least once, also if the deadline has passed. */
	int (*next)(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err);
	void (*free)(evrec_reader *reader); /* frees it, but not the members of evrec_reader */
};

struct evrec_reader {
	const struct reader_ops *ops;
	evrec_source *source;  /* retained */
	struct filter *filter; /* the reader's */
	evrec_event *event;    /* the one that was found last, or NULL */
	struct buf json;       /* its text */
	int failed;            /* the error that ended the reader, or 0 */
};

struct source_ops {
	/*
	 * Opens a reader in a new struct, which is all zero except its first member. Of the evrec_reader's fields sets
	 * only `ops`. NULL and *err.
	 */
	evrec_reader *(*open)(evrec_source *source, const struct filter *filter, bool watch, evrec_error *err);
	void (*free)(evrec_source *source); /* with its memory */
};

struct evrec_source {
	atomic_uint refs;
	const struct source_ops *ops;
};

/* A source of one reference in a zeroed block of `size` bytes. NULL and *err: no memory. */
void *source_new(size_t size, const struct source_ops *ops, evrec_error *err);

/* A source that is a file. */
struct path_source {
	evrec_source base;
	char *path;
};
/*
 * A path_source of one reference, which copies the path. NULL and *err: the path is invalid (the message says that it
 * must be `must_be`), or no memory.
 */
evrec_source *path_source_new(evrec_str path, const char *must_be, const struct source_ops *ops, evrec_error *err);
void path_source_free(evrec_source *source); /* for source_ops */

/* The path of a store, which lives as long as the source; unset: the source is of another kind. */
evrec_str source_store_path(const evrec_source *source);

/*
 * Sets *found to `event`, which it owns, with the text in reader->json. `event` NULL: the text is no event, or there
 * was no memory. EVREC_READ_EVENT or EVREC_ENOMEM.
 */
int reader_show(evrec_reader *reader, evrec_event *event, bool deleted, evrec_found *found, evrec_error *err);
/* The deadline of a call with this timeout: INT64_MAX for EVREC_FOREVER. */
int64_t reader_deadline(int64_t timeout);
/* Sleeps until the deadline, for `longest` ns at most, or until a signal comes. */
void reader_sleep(int64_t deadline, int64_t longest);

#pragma GCC visibility pop

#endif
