#define _GNU_SOURCE /* realpath */

/* Opens a store's file, and makes it if there is none. */
#include "spool/private_file.h"
#include "store/store_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 100

/*
 * Held while a file is made and opened. To close a descriptor of a file gives up the POSIX locks that SQLite has on the
 * file for this process; so a file that may be open here is never opened but by SQLite.
 */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/*
 * Sets d->full to the path with its folder resolved, once: the process may change its folder later, and SQLite has a
 * meaning of its own for names such as ":memory:" and "file:x". The file itself may not be a link. False: see *err.
 */
static bool resolve(struct store_db *d, evrec_error *err)
{
	char folder[PATH_MAX], resolved[PATH_MAX];
	const char *slash = strrchr(d->path, '/');
	const char *name = slash == NULL ? d->path : slash + 1;
	const size_t len = slash == NULL || slash == d->path ? 1 : (size_t)(slash - d->path);
	struct buf full = { 0 };

	if (d->full != NULL) {
		return true;
	}
	if (len >= sizeof(folder) || name[0] == '\0') {
		private_file_set_errno(err, d->path, name[0] == '\0' ? EISDIR : ENAMETOOLONG);
		return false;
	}
	memcpy(folder, slash == NULL ? "." : d->path, len);
	folder[len] = '\0';
	if (realpath(folder, resolved) == NULL) {
		private_file_set_errno(err, d->path, errno);
		return false;
	}
	buf_printf(&full, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name);
	if (full.failed) {
		buf_free(&full);
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	d->full = full.data;
	return true;
}

/* False, with *err: the file of the store with this suffix is there, and forbids this user what `mode` says. */
static bool check_access(const struct store_db *d, const char *suffix, int mode, evrec_error *err)
{
	struct buf name = { 0 };
	int error;

	buf_printf(&name, "%s%s", d->full, suffix);
	if (name.failed) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	error = faccessat(AT_FDCWD, name.data, mode, AT_EACCESS) == 0 ? 0 : errno;
	if (error != 0 && error != ENOENT) {
		private_file_set_errno(err, name.data, error);
	}
	buf_free(&name);
	return error == 0 || error == ENOENT;
}

/* A reader may be another user than the owner. */
static bool check_file(struct store_db *d, enum store_access access, evrec_error *err)
{
	struct stat st;

	if (lstat(d->full, &st) != 0) {
		private_file_set_errno(err, d->path, errno);
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		return store_db_refuse(d, S_ISLNK(st.st_mode) ? " is a symbolic link" : " is not a regular file", err);
	}
	d->device = st.st_dev;
	d->inode = st.st_ino;
	if (access == STORE_READ) {
		return check_access(d, "", R_OK, err);
	}
	/* private_file_check also accepts a file of root's, which this user may not be able to write. */
	if (!private_file_check(d->full, err) || !check_access(d, "", R_OK | W_OK, err)) {
		return false;
	}
	/* An empty file becomes a store here, as private as one that is made. SQLite gives its mode to -wal and -shm. */
	return st.st_size != 0 || private_file_protect_path(d->full, err);
}

/* False, with *err: there is none, and it cannot be made. */
static bool make_file(const struct store_db *d, evrec_error *err)
{
	const int fd = open(d->full, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);

	if (fd < 0 && errno != EEXIST) {
		private_file_set_errno(err, d->path, errno);
		return false;
	}
	if (fd >= 0) {
		(void)close(fd);
	}
	return true;
}

/* trusted_schema is off, as the file may be untrusted. */
static const char *const settings[] = {
	[STORE_READ] = "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cache_size = -4096",
	[STORE_WRITE] = "PRAGMA trusted_schema = OFF; PRAGMA cache_size = -8192; PRAGMA synchronous = NORMAL; "
			"PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 33554432",
};

static bool connect(struct store_db *d, evrec_error *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;

	if (sqlite3_open_v2(d->full, &d->db, flags, NULL) != SQLITE_OK) {
		return store_db_failed(d, err);
	}
	(void)sqlite3_extended_result_codes(d->db, 0);
	(void)sqlite3_busy_timeout(d->db, BUSY_MS);
	return true;
}

/* The pragmas of a new file come before its first table, and cannot be in a transaction. */
static bool set_up(struct store_db *d, evrec_error *err)
{
	int64_t pages;

	if (!store_db_ask(d, "PRAGMA page_count", &pages, err) ||
	    (pages == 0 && !store_db_run(d, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL", err))) {
		return false;
	}
	if (!store_db_run(d, "BEGIN IMMEDIATE", err)) {
		return false;
	}
	if (!schema_make(d, err) || !store_db_run(d, "COMMIT", err)) {
		(void)store_db_run(d, "ROLLBACK", NULL);
		return false;
	}
	return store_db_run(d, "PRAGMA journal_mode = WAL", err);
}

static bool open_file(struct store_db *d, enum store_access access, evrec_error *err)
{
	return resolve(d, err) && (access == STORE_READ || make_file(d, err)) && check_file(d, access, err) &&
	       connect(d, err);
}

static bool is_folder_writable(const struct store_db *d)
{
	char folder[PATH_MAX];
	const size_t len = (size_t)(strrchr(d->full, '/') - d->full);

	if (len >= sizeof(folder)) {
		return true;
	}
	memcpy(folder, d->full, len);
	folder[len] = '\0';
	return faccessat(AT_FDCWD, len == 0 ? "/" : folder, W_OK, AT_EACCESS) == 0;
}

/*
 * A reader shares the log and its index with the writers. If it may not make these files, it can use those of a writer.
 * SQLite fails with one of the two codes if there are none, or if they cannot be read. A writer must be able to make them, or
 * to write them.
 */
static void explain_failure(const struct store_db *d, enum store_access access, evrec_error *err)
{
	const int code = sqlite3_errcode(d->db), mode = access == STORE_READ ? R_OK : R_OK | W_OK;

	if ((code == SQLITE_READONLY || code == SQLITE_CANTOPEN) && check_access(d, "-wal", mode, err) &&
	    check_access(d, "-shm", mode, err) && !is_folder_writable(d)) {
		(void)store_db_refuse(
			d,
			access == STORE_READ
				? ": reading a store needs write permission to its folder, unless a writer has it open"
				: ": writing a store needs write permission to its folder",
			err);
	}
}

bool store_db_open(struct store_db *d, enum store_access access, evrec_error *err)
{
	bool ok;

	(void)pthread_mutex_lock(&making);
	ok = open_file(d, access, err);
	(void)pthread_mutex_unlock(&making);
	if (ok && store_db_run(d, settings[access], err) &&
	    (access == STORE_READ ? schema_check(d, err) : set_up(d, err))) {
		return true;
	}
	if (ok) {
		explain_failure(d, access, err);
	}
	store_db_close(d);
	return false;
}

bool store_db_is_current(const struct store_db *d)
{
	struct stat st;

	return lstat(d->full, &st) == 0 && st.st_dev == d->device && st.st_ino == d->inode;
}
