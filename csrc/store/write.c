#define _GNU_SOURCE /* memrchr */

#include "store/store.h"

#include "event/event.h"
#include "spool/sqlite_guard.h"
#include "store/store_inner.h"

struct store *store_new(evrec_str path)
{
	struct store *store = mem_zalloc(sizeof(*store));

	if (store == NULL || !store_db_init(&store->db, path)) {
		mem_free(store);
		return NULL;
	}
	(void)sqlite_load(NULL); /* before the guard */
	store_list_add(store);
	return store;
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
