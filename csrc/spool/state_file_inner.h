/*
 * state_file_inner.h - the struct and internal functions of a state file, for its two files: state_file.c opens, reads
 * and ends it, and state_file_write.c writes it. The driver's thread.
 */
#ifndef EVREC_STATE_FILE_INNER_H
#define EVREC_STATE_FILE_INNER_H

#include "spool/spool_lock.h"
#include "spool/state_file.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

#define MAGIC "evrec state\n"
#define MAGIC_LEN (sizeof(MAGIC) - 1)

struct head {
	char magic[MAGIC_LEN];
	uint32_t version; /* in the machine's byte order: a file of the other byte order has another version */
};

struct state_file {
	char *path, *new_path, *lock_path;
	char *folder; /* of a spool, in which they lie; NULL: none */
	uint32_t version;
	struct spool_lock lock;
	struct {
		bool done;
		enum state_opened opened;
		struct buf contents;
		evrec_str records;
		evrec_error err;
	} ahead;                           /* state_file_open_ahead */
	bool awaits_lock;                  /* another owner had it: it is asked for again */
	const struct state_source *source; /* NULL: no state yet */
	void *ctx;
	void (*wake)(void *ctx);
	void *wake_ctx;
	pthread_mutex_t telling;       /* for both below */
	void (*on_written)(void *ctx); /* or NULL */
	void *on_written_ctx;
	atomic_bool changed, hurry;
	atomic_bool useless;               /* it cannot be written for now */
	_Atomic uint64_t changes, written; /* the number of changes, and how many of them are in the file */
	uint64_t begun;                    /* `changes` when the present write began */
	int fd;                            /* the file to append to; -1: the next write makes a new one */
	size_t len, new_len;               /* bytes of both files */
	size_t whole;                      /* the bytes of the file when it was new */
	int new_fd;                        /* the file that is being made; -1: none is */
	uint64_t cursor;                   /* in the state, for the new file */
	bool leads;                        /* it is written before anything is sent */
	bool writing;                      /* a write was begun, and some entries are left */
	bool begins;                       /* no entry of this write was taken yet */
	size_t left;                       /* changed entries that are still to be taken */
	int64_t due;                       /* when the next write may begin, or the present one continue; monotonic */
	struct buf out;
	evrec_error failure; /* the last that was reported */
};

/* Takes the lock, and reads up to `max` bytes. */
enum state_opened state_file_read(struct state_file *f, size_t max, struct buf *contents, evrec_str *records,
                                  evrec_error *err);
/* A new file that is not whole is of no use: removes it. */
void state_file_drop_new(struct state_file *f);
void state_file_close_fd(int *fd); /* and sets it to -1, which it may be already */

#pragma GCC visibility pop

#endif
