/*
 * state_file.h - a file with the state of a sink's correlator, from which the next process continues.
 *
 *   state_file_open     takes the lock, and reads what an earlier process has left
 *   state_file_use      from now on there is a state to write
 *   state_file_changed  the state has changed: wakes the driver, unless that knows; any thread
 *   state_file_step     the driver, each round: if something has changed, once a second, appends it to the file
 *   state_file_hurry    the next write is not to wait for the second to end; any thread
 *   state_file_has      the changes so far are in the file; any thread
 *   state_file_save     after the last round: writes at once what is left
 *   state_file_close    ends it, and gives up the lock
 *
 * The file is a head and records, whose form is the source's. The first write, and each write after which the file
 * would have more than twice the bytes of the whole state, makes a new file beside it, with the whole state, and
 * renames it to the file's name. So the size of the file is bounded, and at any moment there is a complete file, except
 * for the end of the last record. A file that an earlier process has left is never appended to. After a failure a new
 * file is made, at most every 3 s.
 *
 * The lock is a file of its own, path.lock, which stays. If another process or sink has it, state_file_step asks for it
 * every 3 s while there is something to write. Once it has the lock, it reads only the head, and the whole state
 * replaces the old one. A forked child must not use the parent's state file.
 *
 * A state file knows no events: the source has the records. It belongs to the driver, and after the last round to the
 * thread that ended the driver.
 */
#ifndef EVREC_STATE_FILE_H
#define EVREC_STATE_FILE_H

#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

/* The owner of the state. The driver calls the functions. */
struct state_source {
	/*
	 * Append the records of up to `max` entries, those that have changed until the last call with `begin`, or of all, by a
	 * cursor that begins at 0. Set *taken to how many entries they took, fewer if no more are left, and *left to how many
	 * others are to be taken. False: the state is in use; later. out->failed is no memory.
	 */
	bool (*take_changes)(void *ctx, bool begin, size_t max, struct buf *out, size_t *left);
	bool (*take_all)(void *ctx, uint64_t *cursor, size_t max, struct buf *out, size_t *taken);
	void (*free)(void *ctx);
};

enum state_opened {
	STATE_OPENED,  /* *records are the earlier process's; empty: there were none */
	STATE_IGNORED, /* the file is open, but its records are not used: see *err; the next write replaces the file */
	STATE_IN_USE,  /* it is another process's or sink's: see *err; state_file_step asks for the lock every 3 s */
	STATE_REFUSED, /* it cannot be used: see *err */
};

struct state_file;

/* `version` is that of the records. No I/O. NULL: no memory. */
struct state_file *state_file_new(evrec_str path, uint32_t version);
/* It lies in the folder of a spool, which is made if it is not there yet. Before it is opened. False: no memory. */
bool state_file_set_folder(struct state_file *f, evrec_str folder);
void state_file_free(struct state_file *f); /* NULL is fine; frees the source, writes nothing */
/* Does the I/O of state_file_open, which then only returns the result. */
void state_file_open_ahead(struct state_file *f);
/* Waits for the disk. `contents` has the bytes, *records the part of them that are records. */
enum state_opened state_file_open(struct state_file *f, struct buf *contents, evrec_str *records, evrec_error *err);
/* Owns the source from here on. */
void state_file_use(struct state_file *f, const struct state_source *source, void *ctx);

/* From now on `wake` is called at a change of which the driver does not know yet. */
void state_file_on_change(struct state_file *f, void (*wake)(void *ctx), void *ctx);
/* The state has changed. Cheap; the thread that changes it. */
void state_file_changed(struct state_file *f);
/* The number of changes until now. The thread that changes the state. */
uint64_t state_file_changes(const struct state_file *f);
/*
 * The first `changes` changes are in the file, and survive a kill of the process (not a crash of the machine). Also
 * true as long as the file cannot be written, which was reported as "state": then nobody waits for it. Any thread.
 */
bool state_file_has(const struct state_file *f, uint64_t changes);
/* The next write happens at once, and not within a second. Cheap; any thread. */
void state_file_hurry(struct state_file *f);
/*
 * The driver calls `func` after each write, successful or not. Any thread; once this returns, an earlier function is
 * not called any more. NULL: no function. `func` must not wait.
 */
void state_file_on_written(struct state_file *f, void (*func)(void *ctx), void *ctx);
/* From now on state_file_write_ahead writes: the file is written before anything is sent. Before the driver begins. */
void state_file_lead(struct state_file *f);
/*
 * Writes the changes until now, so that after a kill the next process knows the names and counts that are about to be
 * sent, or written elsewhere. The driver, or before it begins one other thread. False: another thread is using the
 * state, and the file may lack some changes. True also if another owner has the file, or it cannot be written: then
 * nobody waits for it.
 */
bool state_file_write_ahead(struct state_file *f, struct outbox *ob, int64_t now, bool quick);
/*
 * `quick`: writes a small part at a time, and never waits for the disk. Reports errors to the outbox, "state".
 */
void state_file_step(struct state_file *f, struct outbox *ob, int64_t now, bool quick);
/* When the driver has to call state_file_step again: monotonic, INT64_MAX if never. */
int64_t state_file_next_due(const struct state_file *f);
void state_file_save(struct state_file *f, struct outbox *ob);
/* Ends the use of the file. After that all functions do nothing. */
void state_file_close(struct state_file *f);

#pragma GCC visibility pop

#endif
