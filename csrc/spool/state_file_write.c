#include "base/signals.h"
#include "spool/private_file.h"
#include "spool/state_file_inner.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define EACH EVREC_SECOND             /* between two writes */
#define ASK_AGAIN (3 * EVREC_SECOND)  /* after a failure, and for a lock that another owner has */
#define BUSY_WAIT (EVREC_SECOND / 20) /* after the state was in use */
#define PORTION 16                    /* entries taken at once: a recording call may have to wait for these */
#define PORTION_QUICK 64              /* entries in a step that must be quick */
#define SMALL (1u << 20)              /* bytes that a file may always have */
#define SAVE_TRIES 10                 /* of a state that is in use, 1 ms apart */

static bool is_open(const struct state_file *f)
{
	return (f->lock.fd >= 0 || f->awaits_lock) && f->source != NULL;
}

void state_file_on_change(struct state_file *f, void (*wake)(void *ctx), void *ctx)
{
	f->wake = wake;
	f->wake_ctx = ctx;
}

void state_file_changed(struct state_file *f)
{
	/* Changes the state before its number, so that a write that begins with the number has the change. */
	atomic_store_explicit(&f->changes, state_file_changes(f) + 1, memory_order_release);
	if (!atomic_load_explicit(&f->changed, memory_order_relaxed) && !atomic_exchange(&f->changed, true)) {
		f->wake(f->wake_ctx);
	}
}

uint64_t state_file_changes(const struct state_file *f)
{
	return atomic_load_explicit(&f->changes, memory_order_relaxed);
}

bool state_file_has(const struct state_file *f, uint64_t changes)
{
	return atomic_load(&f->written) >= changes || atomic_load(&f->useless);
}

void state_file_hurry(struct state_file *f)
{
	if (!atomic_exchange(&f->hurry, true)) {
		f->wake(f->wake_ctx);
	}
}

void state_file_on_written(struct state_file *f, void (*func)(void *ctx), void *ctx)
{
	(void)pthread_mutex_lock(&f->telling);
	f->on_written = func;
	f->on_written_ctx = ctx;
	(void)pthread_mutex_unlock(&f->telling);
}

int64_t state_file_next_due(const struct state_file *f)
{
	if (!is_open(f) || !(f->writing || atomic_load(&f->changed))) {
		return INT64_MAX;
	}
	return !f->writing && atomic_load(&f->hurry) && !atomic_load(&f->useless) ? INT64_MIN : f->due;
}

static bool fail(const struct state_file *f, int error, evrec_error *err)
{
	private_file_set_errno(err, f->path, error);
	return false;
}

/* 0 or an errno. */
static int write_all(int fd, const char *at, size_t size)
{
	while (size != 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno != EINTR) {
			return errno;
		}
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* The caller may be a poll, outside of all that blocks signals. */
static bool write_to(const struct state_file *f, int fd, const void *data, size_t size, evrec_error *err)
{
	struct signals signals;
	int error;

	signals_block(&signals);
	error = write_all(fd, data, size);
	signals_unblock(&signals);
	return error == 0 || fail(f, error, err);
}

static bool begin_new(struct state_file *f, evrec_error *err)
{
	struct head head = { .version = f->version };

	memcpy(head.magic, MAGIC, MAGIC_LEN);
	(void)unlink(f->new_path);
	f->new_fd = private_file_open(f->new_path, err);
	if (f->new_fd < 0) {
		return false;
	}
	private_file_protect(f->new_fd);
	f->cursor = 0;
	f->new_len = sizeof(head);
	return write_to(f, f->new_fd, &head, sizeof(head), err);
}

/* The new file has the whole state: renames it to the old one's name. */
static bool finish_new(struct state_file *f, bool quick, evrec_error *err)
{
	if (!quick && fdatasync(f->new_fd) != 0) {
		return fail(f, errno, err);
	}
	if (rename(f->new_path, f->path) != 0) {
		return fail(f, errno, err);
	}
	state_file_close_fd(&f->fd);
	f->fd = f->new_fd;
	f->new_fd = -1;
	f->len = f->whole = f->new_len;
	return true;
}

/* Appends f->out to the file. */
static bool append(struct state_file *f, bool to_old, bool to_new, evrec_error *err)
{
	if (f->out.failed) {
		return fail(f, ENOMEM, err);
	}
	f->len += to_old ? f->out.len : 0;
	f->new_len += to_new ? f->out.len : 0;
	return (!to_old || write_to(f, f->fd, f->out.data, f->out.len, err)) &&
	       (!to_new || write_to(f, f->new_fd, f->out.data, f->out.len, err));
}

enum progress { FAILED, BUSY, SOME, DONE };

/* Appends the next portion of changes. A new file that is still empty will have them anyway. */
static enum progress write_changes(struct state_file *f, size_t portion, evrec_error *err)
{
	buf_clear(&f->out);
	if (!f->begins && f->left == 0) {
		return DONE;
	}
	/* Entries that change from now on are left to the next write: else this one might never end. */
	if (!f->source->take_changes(f->ctx, f->begins, portion, &f->out, &f->left)) {
		return BUSY;
	}
	f->begins = false;
	if (!append(f, f->fd >= 0, f->new_fd >= 0 && f->cursor != 0, err)) {
		return FAILED;
	}
	return f->left == 0 ? DONE : SOME;
}

/* Puts the next portion of the whole state into the new file, if there is one. */
static enum progress write_whole(struct state_file *f, size_t portion, bool quick, evrec_error *err)
{
	size_t taken;

	buf_clear(&f->out);
	if (f->new_fd < 0) {
		return DONE;
	}
	if (!f->source->take_all(f->ctx, &f->cursor, portion, &f->out, &taken)) {
		return BUSY;
	}
	if (!append(f, false, true, err)) {
		return FAILED;
	}
	if (taken == portion) {
		return SOME;
	}
	return finish_new(f, quick, err) ? DONE : FAILED;
}

/* The last owner has ended. Its counts are not taken over: this process has counted on its own meanwhile. */
static bool ask_for_lock(struct state_file *f, evrec_error *err)
{
	struct buf head = { 0 };
	evrec_str records;
	enum state_opened opened = state_file_read(f, sizeof(struct head), &head, &records, err);

	buf_free(&head);
	f->awaits_lock = opened != STATE_OPENED && opened != STATE_IGNORED;
	return !f->awaits_lock;
}

/*
 * True: somebody has removed the file, or its lock, and the next write makes a new file. Without its lock the file may
 * have another owner by now. Files that a chroot hides are not removed.
 */
static bool was_removed(struct state_file *f)
{
	const bool lock = spool_lock_is_removed(&f->lock);

	if (!lock && !private_file_is_removed(f->fd)) {
		return false;
	}
	state_file_drop_new(f);
	state_file_close_fd(&f->fd);
	f->writing = false;
	if (lock) {
		spool_lock_release(&f->lock);
		f->awaits_lock = true;
	}
	return true;
}

static bool begin_write(struct state_file *f, evrec_error *err)
{
	atomic_store(&f->hurry, false);
	(void)was_removed(f);
	if (f->awaits_lock && !ask_for_lock(f, err)) {
		return false;
	}
	/* Before any change is taken: a later one is taken, too, or causes one more write. */
	atomic_store(&f->changed, false);
	f->begun = atomic_load(&f->changes);
	f->begins = true;
	f->due = INT64_MIN; /* the write continues at once */
	f->writing = true;
	return (f->fd >= 0 && f->len <= 2 * f->whole + SMALL) || begin_new(f, err);
}

static void tell_written(struct state_file *f)
{
	(void)pthread_mutex_lock(&f->telling);
	if (f->on_written != NULL) {
		f->on_written(f->on_written_ctx);
	}
	(void)pthread_mutex_unlock(&f->telling);
}

/* The old file may lack some changes from now on, so the next write makes a new one. */
static void give_up(struct state_file *f, struct outbox *ob, int64_t now, const evrec_error *err)
{
	char message[sizeof(((struct outbox_message *)0)->message)];

	state_file_drop_new(f);
	state_file_close_fd(&f->fd);
	f->writing = false;
	atomic_store(&f->changed, true);
	f->due = time_after(now, ASK_AGAIN);
	atomic_store(&f->useless, true);
	if (strcmp(f->failure.message, err->message) != 0) {
		f->failure = *err;
		(void)snprintf(message, sizeof(message), "counts are not kept for the next process: %s", err->message);
		outbox_report(ob, "state", message);
	}
	tell_written(f);
}

static enum progress write_some(struct state_file *f, size_t portion, bool quick, evrec_error *err)
{
	enum progress changes, whole;

	changes = write_changes(f, portion, err);
	if (changes == FAILED || changes == BUSY) {
		return changes;
	}
	whole = write_whole(f, portion, quick, err);
	return whole == DONE ? changes : whole;
}

static void end_write(struct state_file *f, int64_t now)
{
	f->writing = false;
	f->due = time_after(now, EACH);
	f->failure.message[0] = '\0';
	atomic_store(&f->written, f->begun);
	atomic_store(&f->useless, false);
	tell_written(f);
	if (f->out.cap > SMALL) {
		buf_free(&f->out);
	}
}

static enum progress write_due(struct state_file *f, struct outbox *ob, int64_t now, bool quick)
{
	enum progress progress = SOME;
	evrec_error err;

	if (!f->writing && !begin_write(f, &err)) {
		progress = FAILED;
	}
	while (progress == SOME) {
		progress = write_some(f, quick ? PORTION_QUICK : PORTION, quick, &err);
		if (quick) {
			break;
		}
	}
	if (progress == FAILED) {
		give_up(f, ob, now, &err);
	} else if (progress == BUSY) {
		f->due = time_after(now, BUSY_WAIT);
	} else if (progress == DONE) {
		end_write(f, now);
	}
	return progress;
}

void state_file_step(struct state_file *f, struct outbox *ob, int64_t now, bool quick)
{
	if (now < state_file_next_due(f)) {
		return;
	}
	if (f->awaits_lock && f->due == INT64_MIN) {
		f->due = time_after(now, ASK_AGAIN);
	} else {
		(void)write_due(f, ob, now, quick);
	}
}

void state_file_lead(struct state_file *f)
{
	f->leads = true;
}

bool state_file_write_ahead(struct state_file *f, struct outbox *ob, int64_t now, bool quick)
{
	const uint64_t changes = atomic_load(&f->changes);

	/* A failed write sets `useless`, and then state_file_has is true. */
	while (f->leads && is_open(f) && !f->awaits_lock && !state_file_has(f, changes)) {
		if (write_due(f, ob, now, quick) == BUSY) {
			return false;
		}
	}
	return true;
}

void state_file_save(struct state_file *f, struct outbox *ob)
{
	const struct timespec moment = { 0, EVREC_SECOND / 1000 };
	unsigned writes = 0, busy = 0;
	evrec_error err;

	/* A removed file lacks more than the last changes. */
	if (was_removed(f)) {
		atomic_store(&f->changed, true);
		if (f->awaits_lock) {
			(void)ask_for_lock(f, &err);
		}
	}
	/* If another owner has the file, it is not written: the owner's last write is as good. */
	while (!f->awaits_lock && writes < 2 && busy < SAVE_TRIES && state_file_next_due(f) != INT64_MAX) {
		if (write_due(f, ob, 0, false) != BUSY) {
			writes++;
		} else if (++busy < SAVE_TRIES) {
			(void)nanosleep(&moment, NULL);
		}
	}
}
