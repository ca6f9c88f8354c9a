#define _GNU_SOURCE /* memrchr */

#include "store/store.h"

#include "event/event.h"
#include "spool/sqlite_guard.h"
#include "store/store_inner.h"

static const char *const sources[STORE_STATEMENTS] = {
	[STORE_FIND] = "SELECT rv, ns, facet, regarding, related FROM events WHERE key = ?1 AND ns = ?2",
	[STORE_INSERT] = "INSERT INTO events (ns, key, facet, regarding, related, first, last, body) "
			 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[STORE_DELETE] = "DELETE FROM events WHERE rv = ?1",
	[STORE_OLDEST] = "SELECT rv, ns, facet, regarding, related, length(CAST(body AS BLOB)) FROM events "
			 "WHERE last < ?1 ORDER BY last, facet, rv LIMIT ?2",
	[STORE_BEGIN] = "BEGIN IMMEDIATE",
	[STORE_COMMIT] = "COMMIT",
};

struct store *store_new(evrec_str path)
{
	struct store *store = mem_zalloc(sizeof(*store));

	if (store == NULL || !store_db_init(&store->db, path)) {
		mem_free(store);
		return NULL;
	}
	sqlite_guard_init();
	store_list_add(store);
	return store;
}

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

void store_free(struct store *store)
{
	if (store != NULL) {
		store_close(store);
		store_list_remove(store);
		store_db_fini(&store->db);
		buf_free(&store->key);
		mem_free(store);
	}
}

static bool open_inside(struct store *store, evrec_error *err)
{
	if (!store_db_open(&store->db, STORE_WRITE, err)) {
		return false;
	}
	if (store_db_prepare_all(&store->db, sources, store->statements, STORE_STATEMENTS, err) &&
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

bool store_delete(struct store *store, int64_t rv, evrec_error *err)
{
	sqlite3_stmt *statement = store->statements[STORE_DELETE];

	(void)sqlite3_bind_int64(statement, 1, rv);
	return store_db_finish(&store->db, statement, err);
}

bool store_release(struct store *store, const struct store_keys *keys, evrec_error *err)
{
	struct ids *ids = &store->ids;

	return ids_release_facet(ids, &store->db, keys->facet, err) &&
	       ids_release_object(ids, &store->db, keys->regarding, err) &&
	       (keys->related == 0 || ids_release_object(ids, &store->db, keys->related, err));
}

/* The event's name as the table has it (schema.c). */
static evrec_str make_key(struct store *store, evrec_str name)
{
	const char *dot = name.len == 0 ? NULL : memrchr(name.data, '.', name.len);
	const size_t head = dot == NULL ? 0 : (size_t)(dot - name.data);

	buf_clear(&store->key);
	if (dot == NULL) {
		return name;
	}
	buf_put(&store->key, dot + 1, name.len - head - 1);
	buf_put(&store->key, ".", 1);
	buf_put(&store->key, name.data, head);
	return buf_str(&store->key);
}

/* Deletes the event's earlier state, if there is one, whose keys are then *old. */
static bool delete_old(struct store *store, evrec_str key, int64_t ns, struct store_keys *old, evrec_error *err)
{
	sqlite3_stmt *statement = store->statements[STORE_FIND];
	int64_t rv;
	int row;

	store_bind_str(statement, 1, key);
	(void)sqlite3_bind_int64(statement, 2, ns);
	row = store_db_step(&store->db, statement, err);
	if (row == 1) {
		rv = sqlite3_column_int64(statement, 0);
		*old = (struct store_keys){
			.ns = sqlite3_column_int64(statement, 1),
			.facet = sqlite3_column_int64(statement, 2),
			.regarding = sqlite3_column_int64(statement, 3),
			.related = sqlite3_column_int64(statement, 4),
		};
	}
	(void)sqlite3_reset(statement);
	return row == 0 || (row == 1 && store_delete(store, rv, err));
}

static bool insert(struct store *store, evrec_str key, const struct store_keys *keys, const evrec_fields *event,
                   evrec_str json, evrec_error *err)
{
	sqlite3_stmt *statement = store->statements[STORE_INSERT];

	(void)sqlite3_bind_int64(statement, 1, keys->ns);
	store_bind_str(statement, 2, key);
	(void)sqlite3_bind_int64(statement, 3, keys->facet);
	(void)sqlite3_bind_int64(statement, 4, keys->regarding);
	(void)sqlite3_bind_null(statement, 5);
	if (keys->related != 0) {
		(void)sqlite3_bind_int64(statement, 5, keys->related);
	}
	(void)sqlite3_bind_int64(statement, 6, event->event_time != EVREC_UNSET ? event->event_time : event->first);
	(void)sqlite3_bind_int64(statement, 7, event_last(event));
	store_bind_str(statement, 8, json);
	return store_db_finish(&store->db, statement, err);
}

static bool put_inside(struct store *store, const evrec_fields *event, evrec_str json, evrec_error *err)
{
	const evrec_str key = make_key(store, event->name);
	struct store_keys keys, old = { 0 };

	if (store->key.failed) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return ids_of_event(&store->ids, &store->db, event, &keys, err) && delete_old(store, key, keys.ns, &old, err) &&
	       insert(store, key, &keys, event, json, err) &&
	       (old.facet == 0 || memcmp(&old, &keys, sizeof(keys)) == 0 || store_release(store, &old, err));
}

bool store_put(struct store *store, const evrec_fields *event, evrec_str json, evrec_error *err)
{
	bool ok;

	store_enter(store);
	ok = put_inside(store, event, json, err);
	store_leave(store);
	return ok;
}
