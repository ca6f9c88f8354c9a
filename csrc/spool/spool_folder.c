#define _POSIX_C_SOURCE 200809L /* lstat */

#include "spool/spool_folder.h"

#include "spool/private_file.h"
#include "spool/spool_lock.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".spool"
#define LOCK_SUFFIX SUFFIX ".lock"
#define NAME_SIZE 80

static char *join(const char *path, const char *between, const char *name)
{
	struct buf joined = { 0 };

	buf_put_str(&joined, str_from(path));
	buf_put_str(&joined, str_from(between));
	buf_put_str(&joined, str_from(name));
	(void)buf_cstr(&joined);
	if (joined.failed) {
		buf_free(&joined);
	}
	return joined.data;
}

/* False, with *err: the path and the text of errno's value `error`. */
static bool fail(const char *path, int error, evrec_error *err)
{
	private_file_set_errno(err, path, error);
	return false;
}

/* ---- names ---- */

static void make_name(char name[NAME_SIZE])
{
	static atomic_uint n;

	(void)snprintf(name, NAME_SIZE, "%016" PRIx64 "-%ld-%u" SUFFIX, (uint64_t)evrec_clock_now(evrec_clock_real()),
	               (long)getpid(), atomic_fetch_add(&n, 1));
}

struct spool *spool_folder_file(const char *path, const char *name)
{
	char *joined = join(path, "/", name);
	struct spool *spool = joined == NULL ? NULL : spool_new(str_from(joined));

	mem_free(joined);
	return spool;
}

struct spool *spool_folder_new_file(const char *path)
{
	char name[NAME_SIZE];

	make_name(name);
	return spool_folder_file(path, name);
}

char *spool_folder_state_path(const char *path, uint64_t of)
{
	char name[NAME_SIZE];

	(void)snprintf(name, NAME_SIZE, "share-%016" PRIx64 ".state", of);
	return join(path, "/", name);
}

char *spool_folder_beside(const char *state_path)
{
	return join(state_path, "", SUFFIX);
}

static bool ends_with(const char *name, size_t len, const char *suffix)
{
	const size_t n = strlen(suffix);

	return len > n && memcmp(name + len - n, suffix, n) == 0;
}

bool spool_folder_each(const char *path, bool (*func)(void *ctx, const char *name), void *ctx, evrec_error *err)
{
	DIR *dir = opendir(path);
	struct dirent *file;
	bool more = true;

	if (dir == NULL) {
		return fail(path, errno, err);
	}
	/* Safe, as in glibc readdir needs only a DIR for each thread. */
	while (more && (file = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		const size_t len = strlen(file->d_name);

		if (ends_with(file->d_name, len, LOCK_SUFFIX)) {
			file->d_name[len - (sizeof(LOCK_SUFFIX) - sizeof(SUFFIX))] = '\0';
			more = func(ctx, file->d_name);
		} else if (ends_with(file->d_name, len, SUFFIX)) {
			more = func(ctx, file->d_name);
		}
	}
	(void)closedir(dir);
	return true;
}

/* ---- the folder ---- */

static bool check(const char *path, evrec_error *err)
{
	const char *reason = NULL;
	struct stat st;

	if (lstat(path, &st) != 0) {
		return fail(path, errno, err);
	}
	if (S_ISLNK(st.st_mode)) {
		reason = " is a symbolic link";
	} else if (!S_ISDIR(st.st_mode)) {
		reason = " is not a folder";
	} else if (st.st_uid != geteuid() && st.st_uid != 0) {
		reason = " belongs to another user";
	} else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		reason = " is a folder that others may write to: name a folder inside it";
	}
	if (reason != NULL) {
		private_file_set_error(err, path, reason);
	}
	return reason == NULL;
}

static bool make(const char *path, evrec_error *err)
{
	if (mkdir(path, S_IRWXU) == 0) {
		/* Under any umask. */
		(void)chmod(path, S_IRWXU);
	} else if (errno != EEXIST) {
		return fail(path, errno, err);
	}
	return check(path, err);
}

/* ---- the single file of versions before ---- */

/* The paths of the old file, while it is moved into the folder. */
struct move {
	const char *path;
	char *aside, *lock, *journal, *into;
};

static bool is_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Opening and closing it rolls an unfinished transaction back, so that its journal is not left behind. */
static bool check_file(const char *path, evrec_error *err)
{
	struct spool *spool = spool_new(str_from(path));
	bool ok = spool != NULL && spool_open(spool, SPOOL_MODE_LAST, err);

	if (spool == NULL) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
	}
	spool_free(spool);
	return ok;
}

/* With the lock: another process may have done some of this, or died in the middle of it. */
static bool move_locked(const struct move *move, evrec_error *err)
{
	if (is_file(move->path)) {
		if (access(move->journal, F_OK) == 0) {
			return fail(move->journal, EBUSY, err);
		}
		if (rename(move->path, move->aside) != 0) {
			return fail(move->path, errno, err);
		}
	}
	return !is_file(move->aside) ||
	       (make(move->path, err) && (rename(move->aside, move->into) == 0 || fail(move->aside, errno, err)));
}

static bool move_file(const struct move *move, evrec_error *err)
{
	struct spool_lock lock;
	enum spool_lock_result result;
	bool ok;

	if (is_file(move->path) && !check_file(move->path, err)) {
		return false;
	}
	spool_lock_init(&lock);
	result = spool_lock_take(&lock, move->lock, err);
	if (result != SPOOL_LOCK_TAKEN) {
		return result == SPOOL_LOCK_IN_USE && fail(move->path, EBUSY, err);
	}
	ok = move_locked(move, err);
	if (ok) {
		(void)unlink(move->lock);
	}
	spool_lock_release(&lock);
	return ok;
}

static bool take_old_file(const char *path, evrec_error *err)
{
	char name[NAME_SIZE];
	struct move move = { .path = path, .aside = join(path, "", ".moving") };
	bool ok = true;

	if (move.aside != NULL && (is_file(path) || is_file(move.aside))) {
		make_name(name);
		move.lock = join(path, "", ".lock");
		move.journal = join(path, "", "-journal");
		move.into = join(path, "/", name);
		ok = move.lock != NULL && move.journal != NULL && move.into != NULL ? move_file(&move, err)
		                                                                    : fail(path, ENOMEM, err);
	}
	mem_free(move.aside);
	mem_free(move.lock);
	mem_free(move.journal);
	mem_free(move.into);
	return ok;
}

bool spool_folder_prepare(const char *path, evrec_error *err)
{
	return take_old_file(path, err) && make(path, err);
}
