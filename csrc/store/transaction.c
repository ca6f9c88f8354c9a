/* A writer's connection and its transactions: opened when a transaction begins, closed before a fork (fork.c). */
#include "spool/sqlite_guard.h"
#include "store/store.h"
#include "store/store_inner.h"

void store_enter(struct store *store)
{
	if (!store->locked) {
		(void)pthread_mutex_lock(&store->lock);
	}
	sqlite_guard_enter();
}

void store_leave(struct store *store)
{
	sqlite_guard_leave();
	if (!store->locked) {
		(void)pthread_mutex_unlock(&store->lock);
	}
}

static bool is_open(const struct store *store)
{
	return store->db.db != NULL;
}

bool store_is_open(struct store *store)
{
	bool open;

	store_enter(store);
	open = is_open(store);
	store_leave(store);
	return open;
}

void store_close_inside(struct store *store)
{
	if (is_open(store)) {
		store_db_finalize_all(store->statements, STORE_STATEMENTS);
		store_db_finalize_all(store->note_statements, NOTE_STATEMENTS);
		ids_close(&store->ids);
		store_db_close(&store->db);
	}
}

void store_close(struct store *store)
{
	store_enter(store);
	store_close_inside(store);
	store->locked = false;
	store_leave(store);
}

static bool open_inside(struct store *store, evrec_error *err)
{
	if (!store_db_open(&store->db, STORE_WRITE, err)) {
		return false;
	}
	if (store_db_prepare_all(&store->db, store_sources, store->statements, STORE_STATEMENTS, err) &&
	    store_db_prepare_all(&store->db, note_sources, store->note_statements, NOTE_STATEMENTS, err) &&
	    ids_open(&store->ids, &store->db, err)) {
		return true;
	}
	store_close_inside(store);
	return false;
}

bool store_begin_inside(struct store *store, evrec_error *err)
{
	if (!store_db_finish(&store->db, store->statements[STORE_BEGIN], err)) {
		return false;
	}
	if (!ids_begin(&store->ids, &store->db, err)) {
		store_rollback_inside(store);
		return false;
	}
	return true;
}

bool store_commit_inside(struct store *store, evrec_error *err)
{
	return ids_commit(&store->ids, &store->db, err) &&
	       store_db_finish(&store->db, store->statements[STORE_COMMIT], err);
}

void store_rollback_inside(struct store *store)
{
	/* After some failures SQLite has rolled back already. */
	(void)store_db_run(&store->db, "ROLLBACK", NULL);
	ids_clear(&store->ids);
}

bool store_begin(struct store *store, evrec_error *err)
{
	bool ok;

	if (sqlite_guard_is_locked()) {
		(void)error_set(err, EVREC_ESYSTEM, "this process was forked while its parent used a store");
		return false;
	}
	store_enter(store);
	if (is_open(store) && !store_db_is_current(&store->db)) {
		store_close_inside(store);
	}
	ok = (is_open(store) || open_inside(store, err)) && store_begin_inside(store, err);
	store->locked = ok;
	store_leave(store);
	return ok;
}

bool store_commit(struct store *store, evrec_error *err)
{
	bool ok;

	store_enter(store);
	ok = store_commit_inside(store, err);
	store->locked = !ok;
	store_leave(store);
	return ok;
}

void store_rollback(struct store *store)
{
	store_enter(store);
	if (is_open(store)) {
		store_rollback_inside(store);
	}
	store->locked = false;
	store_leave(store);
}
