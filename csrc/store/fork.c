#include "base/clock.h"
#include "spool/sqlite_guard.h"
#include "store/query_inner.h"

#include <time.h>

/*
 * No store is open across a fork, and no reader stays open in a child: SQLite records its locks by file, for the whole
 * process, so a child's SQLite would assume that it has its parent's locks. Its connections would then lock nothing,
 * and another process could remove the log that they write to.
 *
 * Each store has a lock, which is held during a transaction. fork() takes them all, and closes the stores; their next
 * transactions open them again. It does so before fork_lock keeps threads out of SQLite, as a transaction goes in and out.
 *
 * A reader may be in a long transaction. So the parent keeps it open, and the child closes its copy before it opens
 * anything else: a child has none of its parent's locks, and so releases none.
 */
#define WAIT_SECONDS 1 /* for all transactions together: a disk may hang */
#define OPEN_WAIT (2 * EVREC_SECOND)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct store *first;
static struct reader_link *first_reader;

static void before_fork(void)
{
	struct timespec deadline;

	(void)clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += WAIT_SECONDS;
	(void)pthread_mutex_lock(&list_lock);
	for (struct store *store = first; store != NULL; store = store->next) {
		store->forking = pthread_mutex_timedlock(&store->lock, &deadline) == 0;
		if (store->forking && store->db.db != NULL) {
			/* A checkpoint would take long, and the file is opened again soon. */
			(void)sqlite3_db_config(store->db.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
			store_close_inside(store);
		}
	}
}

/* In the parent and in the child. */
static void after_fork(void)
{
	for (struct store *store = first; store != NULL; store = store->next) {
		if (store->forking) {
			store->forking = false;
			(void)pthread_mutex_unlock(&store->lock);
		}
	}
	(void)pthread_mutex_unlock(&list_lock);
}

static void after_fork_in_child(void)
{
	for (struct reader_link *reader = first_reader; reader != NULL; reader = reader->next) {
		reader->abandoned = true;
		if (reader->db->db != NULL && !sqlite_guard_is_locked()) {
			(void)sqlite3_db_config(reader->db->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
			reader->close(reader);
		}
	}
	after_fork();
}

/*
 * Handlers run before a fork in the reverse order in which they were set, and after it in that order: here first before a
 * fork, and in the child once the guard knows whether SQLite may be used.
 */
static AT_LOAD(LOAD_OUTER_LOCKS) void init(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void store_list_add(struct store *store)
{
	(void)pthread_mutex_init(&store->lock, NULL);
	(void)pthread_mutex_lock(&list_lock);
	store->next = first;
	first = store;
	(void)pthread_mutex_unlock(&list_lock);
}

void store_list_remove(struct store *store)
{
	struct store **link = &first;

	(void)pthread_mutex_lock(&list_lock);
	while (*link != store) {
		link = &(*link)->next;
	}
	*link = store->next;
	(void)pthread_mutex_unlock(&list_lock);
	(void)pthread_mutex_destroy(&store->lock);
}

static bool refuse_locked(evrec_error *err)
{
	(void)error_set(err, EVREC_ESYSTEM, "this process was forked while its parent used a store");
	return false;
}

bool store_readers_allowed(evrec_error *err)
{
	(void)sqlite_load(NULL); /* before the guard */
	return !sqlite_guard_is_locked() || refuse_locked(err);
}

bool store_readers_check(const struct reader_link *reader, evrec_error *err)
{
	if (sqlite_guard_is_locked()) {
		return refuse_locked(err);
	}
	return !reader->abandoned ||
	       store_db_refuse(reader->db, ": this reader was opened before the process was forked; open another", err);
}

void store_readers_add(struct reader_link *reader, struct store_db *db, void (*close)(struct reader_link *reader))
{
	reader->db = db;
	reader->close = close;
	(void)pthread_mutex_lock(&list_lock);
	reader->next = first_reader;
	first_reader = reader;
	(void)pthread_mutex_unlock(&list_lock);
}

bool store_readers_open(struct reader_link *reader, bool (*open)(struct reader_link *reader, evrec_error *err),
                        evrec_error *err)
{
	const int64_t deadline = time_after(clock_monotonic(evrec_clock_real()), OPEN_WAIT);
	bool ok, busy;

	do {
		reader->db->busy = false;
		sqlite_guard_enter();
		ok = open(reader, err);
		busy = !ok && reader->db->busy;
		if (!ok) {
			reader->close(reader);
		}
		sqlite_guard_leave();
	} while (busy && clock_monotonic(evrec_clock_real()) < deadline);
	return ok;
}

bool store_readers_end(struct reader_link *reader)
{
	struct reader_link **link = &first_reader;

	if (sqlite_guard_is_locked()) {
		return false;
	}
	sqlite_guard_enter();
	reader->close(reader);
	sqlite_guard_leave();
	(void)pthread_mutex_lock(&list_lock);
	while (*link != reader) {
		link = &(*link)->next;
	}
	*link = reader->next;
	(void)pthread_mutex_unlock(&list_lock);
	return true;
}
