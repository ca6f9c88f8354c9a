#define _POSIX_C_SOURCE 200809L /* pread */

#include "spool/spool_inner.h"

#include "base/utf8.h"
#include "spool/private_file.h"

#include <errno.h>
#include <unistd.h>

#define APPLICATION 0x65767263 /* "evrc" */
#define APPLICATION_AT 68      /* in the file's header */
#define VERSION 2

static const char schema[] = "PRAGMA application_id = 0x65767263;"
			     "PRAGMA user_version = 1;"
			     "CREATE TABLE writes ("
			     "  seq INTEGER PRIMARY KEY,"
			     "  verb TEXT NOT NULL,"
			     "  count INTEGER NOT NULL,"
			     "  arrived INTEGER NOT NULL,"
			     "  last INTEGER NOT NULL,"
			     "  event TEXT NOT NULL"
			     ")";
/* The text of an event has its time in whole seconds. */
static const char from_version_1[] = "ALTER TABLE writes ADD COLUMN time INTEGER NOT NULL DEFAULT -9223372036854775808;"
				     "PRAGMA user_version = 2";
_Static_assert(EVREC_UNSET + INT64_MAX == -1, "the time of rows of version 1 is not set");

/* With "./" before a relative path, as SQLite has a meaning of its own for names such as ":memory:". NULL: no memory. */
static char *join_path(evrec_str path, evrec_str suffix)
{
	struct buf name = { 0 };

	if (path.data[0] != '/') {
		buf_put_str(&name, EVREC_STR("./"));
	}
	buf_put_str(&name, path);
	buf_put_str(&name, suffix);
	(void)buf_cstr(&name);
	if (name.failed) {
		buf_free(&name);
	}
	return name.data;
}

struct spool *spool_new(evrec_str path)
{
	struct spool *spool = mem_zalloc(sizeof(*spool));

	if (spool == NULL) {
		return NULL;
	}
	(void)sqlite_load(NULL); /* before the guard */
	spool_lock_init(&spool->lock);
	spool->path = join_path(path, EVREC_STR(""));
	spool->lock_path = join_path(path, EVREC_STR(".lock"));
	spool->journal_path = join_path(path, EVREC_STR("-journal"));
	spool->wal_path = join_path(path, EVREC_STR("-wal"));
	spool->pending_path = join_path(path, EVREC_STR("-pending"));
	if (spool->path == NULL || spool->lock_path == NULL || spool->journal_path == NULL || spool->wal_path == NULL ||
	    spool->pending_path == NULL) {
		spool_free(spool);
		return NULL;
	}
	spool->shown = path_shown(spool->path);
	return spool;
}

void spool_free(struct spool *spool)
{
	if (spool != NULL) {
		spool_close(spool);
		mem_free(spool->path);
		mem_free(spool->lock_path);
		mem_free(spool->journal_path);
		mem_free(spool->wal_path);
		mem_free(spool->pending_path);
		mem_free(spool);
	}
}

bool spool_is_open(const struct spool *spool)
{
	return spool->db != NULL;
}

/* Makes the tables of a new file, converts a file of version 1, and refuses other files. */
static bool check_contents(struct spool *spool, evrec_error *err)
{
	int64_t application, version, tables;

	if (!spool_ask(spool, "PRAGMA application_id", &application, err) ||
	    !spool_ask(spool, "PRAGMA user_version", &version, err) ||
	    !spool_ask(spool, "SELECT count(*) FROM sqlite_schema", &tables, err)) {
		return false;
	}
	if (application == 0 && version == 0 && tables == 0) {
		return spool_run(spool, schema, err) && spool_run(spool, from_version_1, err);
	}
	if (application != APPLICATION) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s is not a spool of evrec", spool->shown, spool->path);
		return false;
	}
	if (version == 1) {
		return spool_run(spool, from_version_1, err);
	}
	if (version != VERSION) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s: a spool of version %d, this evrec writes version %d",
		                spool->shown, spool->path, (int)version, VERSION);
		return false;
	}
	return true;
}

/* The file is empty, or a spool: a path that was given by mistake changes no other file. */
static bool is_ours(int fd)
{
	char header[APPLICATION_AT + 4];
	ssize_t len = pread(fd, header, sizeof(header), 0);

	return len == 0 || (len == (ssize_t)sizeof(header) && memcmp(header + APPLICATION_AT, "evrc", 4) == 0);
}

/*
 * Only with the lock: closing the file gives up the POSIX locks that SQLite may have on it by another descriptor of this
 * process.
 */
static bool make_private(const struct spool *spool, evrec_error *err)
{
	int fd = private_file_open(spool->path, err);

	if (fd < 0) {
		return false;
	}
	if (is_ours(fd)) {
		private_file_protect(fd);
	}
	(void)close(fd);
	return true;
}

/* CLAIMED, IN_USE or REFUSED; only the last one sets *err. */
static enum spool_claim take_lock(struct spool *spool, evrec_error *err)
{
	switch (spool_lock_take(&spool->lock, spool->lock_path, err)) {
	case SPOOL_LOCK_TAKEN:
		return SPOOL_CLAIMED;
	case SPOOL_LOCK_IN_USE:
		return SPOOL_IN_USE;
	default:
		return SPOOL_REFUSED;
	}
}

/*
 * NORMAL: in WAL only a checkpoint waits for the disk. OFF: nothing waits; the kernel has the bytes even if the process
 * dies. FULL, with a rollback journal: a commit is on the disk, and no other file is left.
 */
static const char *const modes[] = {
	[SPOOL_MODE_WAL] = "PRAGMA synchronous = NORMAL; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 1000",
	[SPOOL_MODE_QUICK] = "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 250",
	[SPOOL_MODE_LAST] = "PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE",
};

bool spool_set_mode(struct spool *spool, enum spool_mode mode, evrec_error *err)
{
	if (spool->mode == mode) {
		return true;
	}
	spool->mode = mode;
	return spool_run(spool, modes[mode], err);
}

static bool connect(struct spool *spool, evrec_error *err)
{
	int code;

	sqlite_guard_enter();
	code = sqlite3_open_v2(spool->path, &spool->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite_guard_leave();
	return code == SQLITE_OK || spool_failed(spool, err);
}

/*
 * SQLite's own locks stay on: they exclude its shell, versions of evrec without a lock file, and all others if the lock
 * file was removed. In this mode the lock that BEGIN EXCLUSIVE takes is kept after COMMIT, and WAL needs no shared
 * memory, so no third file. A file that is no spool keeps its journal mode.
 */
static bool open_database(struct spool *spool, enum spool_mode mode, evrec_error *err)
{
	/* Before the first access to the file: other pragmas would map its shared memory. */
	return connect(spool, err) && spool_run(spool, "PRAGMA locking_mode = EXCLUSIVE", err) &&
	       spool_run(spool, mode == SPOOL_MODE_QUICK ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = NORMAL",
	                 err) &&
	       spool_run(spool, "PRAGMA cache_size = -512; BEGIN EXCLUSIVE", err) && check_contents(spool, err) &&
	       spool_commit(spool, err) && spool_prepare(spool, err) && spool_set_mode(spool, mode, err);
}

static bool check_files(const struct spool *spool, evrec_error *err)
{
	/* SQLite plays back any journal, so its owner is checked, too. */
	return private_file_check(spool->path, err) && private_file_check(spool->journal_path, err) &&
	       private_file_check(spool->wal_path, err) && private_file_check(spool->pending_path, err);
}

enum spool_claim spool_reserve(struct spool *spool, evrec_error *err)
{
	enum spool_claim claim = SPOOL_CLAIMED;

	if (!check_files(spool, err)) {
		return SPOOL_REFUSED;
	}
	if (spool->lock.fd < 0) {
		claim = take_lock(spool, err);
	}
	if (claim == SPOOL_IN_USE) {
		(void)spool_fail_in_use(spool, err);
	}
	return claim;
}

void spool_release(struct spool *spool)
{
	if (spool->db == NULL && spool->lock.fd >= 0) {
		spool_remove(spool);
	}
}

static bool is_forked_too_soon(evrec_error *err)
{
	if (sqlite_guard_is_locked()) {
		(void)error_set(err, EVREC_ESYSTEM, "this process was forked while its parent used a spool");
	}
	return sqlite_guard_is_locked();
}

static void close_database(struct spool *spool)
{
	if (spool->db != NULL) {
		sqlite_guard_enter();
		for (size_t i = 0; i < SPOOL_STATEMENTS; i++) {
			(void)sqlite3_finalize(spool->statements[i]);
			spool->statements[i] = NULL;
		}
		(void)sqlite3_close(spool->db);
		sqlite_guard_leave();
		spool->db = NULL;
	}
}

bool spool_open(struct spool *spool, enum spool_mode mode, evrec_error *err)
{
	const bool was_locked = spool->lock.fd >= 0;

	if (spool->db != NULL) {
		return true;
	}
	spool->mode = SPOOL_MODE_NONE;
	if (!is_forked_too_soon(err) && spool_reserve(spool, err) == SPOOL_CLAIMED && make_private(spool, err) &&
	    open_database(spool, mode, err)) {
		return true;
	}
	close_database(spool);
	/* If the lock was taken before, it is still needed: a journal may lie beside the file. */
	if (!was_locked) {
		spool_lock_release(&spool->lock);
	}
	return false;
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) != 0 && errno == ENOENT;
}

enum spool_claim spool_claim(struct spool *spool, evrec_error *err)
{
	enum spool_claim claim = check_files(spool, err) ? take_lock(spool, err) : SPOOL_REFUSED;

	if (claim != SPOOL_CLAIMED) {
		return claim;
	}
	if (is_missing(spool->path) && is_missing(spool->pending_path)) {
		spool_remove(spool);
		return SPOOL_GONE;
	}
	return SPOOL_CLAIMED;
}

bool spool_last_seq(struct spool *spool, int64_t *seq, evrec_error *err)
{
	return spool_ask(spool, "SELECT ifnull(max(seq), 0) FROM writes", seq, err);
}

bool spool_is_damaged(const struct spool *spool)
{
	return spool->damaged;
}

bool spool_check_there(struct spool *spool, evrec_error *err)
{
	/* In a chroot the path leads nowhere, too. */
	if (!spool_lock_is_removed(&spool->lock) || !is_missing(spool->path)) {
		return true;
	}
	spool->damaged = true;
	(void)error_set(err, EVREC_ESYSTEM, "%.*s was removed", spool->shown, spool->path);
	return false;
}

bool spool_is_empty(struct spool *spool)
{
	int64_t rows;

	return spool_ask(spool, "SELECT EXISTS (SELECT 1 FROM writes)", &rows, NULL) && rows == 0;
}

void spool_close(struct spool *spool)
{
	close_database(spool);
	spool_lock_release(&spool->lock);
}

void spool_shed(struct spool *spool)
{
	close_database(spool);
	(void)unlink(spool->path);
	(void)unlink(spool->wal_path);
	(void)unlink(spool->journal_path);
}

/*
 * The lock file is removed last: if the process dies before, the next process that finds the lock without the file
 * removes the rest.
 */
void spool_remove(struct spool *spool)
{
	spool_shed(spool);
	(void)unlink(spool->pending_path);
	(void)unlink(spool->lock_path);
	spool_lock_release(&spool->lock);
}

const char *spool_path(const struct spool *spool)
{
	return spool->path;
}

const char *spool_pending_path(const struct spool *spool)
{
	return spool->pending_path;
}
