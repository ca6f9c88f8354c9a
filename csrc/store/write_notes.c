/* Writes notes (event/notes.h) into the tables `occurrences` and `suppressions`, and deletes old ones. */
#include "event/notes.h"
#include "store/store.h"

#include "store/store_inner.h"

#define SPAN (60 * EVREC_SECOND) /* suppressions of an object that differ in time alone are one row for so long */

static bool put_occurrence(struct store *store, const struct note *note, evrec_error *err)
{
	sqlite3_stmt *statement = store->note_statements[NOTE_PUT_OCCURRENCE];

	store_bind_str(statement, 1, note->texts[NOTE_NS]);
	store_bind_str(statement, 2, note->texts[NOTE_NAME]);
	(void)sqlite3_bind_int64(statement, 3, note->time);
	(void)sqlite3_bind_int64(statement, 4, (int64_t)note->count);
	return store_db_finish(&store->db, statement, err);
}

static bool put_suppression(struct store *store, const struct note *note, evrec_error *err)
{
	sqlite3_stmt *statement = store->note_statements[NOTE_PUT_SUPPRESSION];

	for (int i = 0; i < NOTE_TEXTS; i++) {
		store_bind_str(statement, i + 1, note->texts[i]);
	}
	(void)sqlite3_bind_int64(statement, NOTE_TEXTS + 1, note->time / SPAN);
	(void)sqlite3_bind_int64(statement, NOTE_TEXTS + 2, note->time);
	(void)sqlite3_bind_int64(statement, NOTE_TEXTS + 3, (int64_t)note->count);
	return store_db_finish(&store->db, statement, err);
}

bool store_put_note(struct store *store, const struct note *note, evrec_error *err)
{
	bool ok;

	store_enter(store);
	ok = note->suppressed ? put_suppression(store, note, err) : put_occurrence(store, note, err);
	store_leave(store);
	return ok;
}

bool store_has_old_notes(struct store *store, int64_t before)
{
	bool has = false;

	for (int i = NOTE_OLD_OCCURRENCE; i <= NOTE_OLD_SUPPRESSION && !has; i++) {
		sqlite3_stmt *statement = store->note_statements[i];

		(void)sqlite3_bind_int64(statement, 1, before);
		has = store_db_step(&store->db, statement, NULL) != 0;
		(void)sqlite3_reset(statement);
	}
	return has;
}

int store_expire_notes(struct store *store, int64_t before, int most, evrec_error *err)
{
	int n = 0;

	for (int i = NOTE_EXPIRE_OCCURRENCES; i <= NOTE_EXPIRE_SUPPRESSIONS; i++) {
		sqlite3_stmt *statement = store->note_statements[i];
		int deleted;

		(void)sqlite3_bind_int64(statement, 1, before);
		(void)sqlite3_bind_int64(statement, 2, most);
		if (!store_db_finish(&store->db, statement, err)) {
			return -1;
		}
		deleted = sqlite3_changes(store->db.db);
		n = deleted > n ? deleted : n;
	}
	return n;
}
