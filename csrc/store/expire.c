#include "store/store.h"

#include "store/store_inner.h"

#define VACUUM_PAGES "256" /* at a time */
#define SPARE_MIN 1024     /* free pages that stay in the file for the next events */

/* The pages of the file. */
struct pages {
	int64_t size, count, free;
};

static bool get_pages(struct store *store, struct pages *pages, evrec_error *err)
{
	return store_db_ask(&store->db, "PRAGMA page_size", &pages->size, err) &&
	       store_db_ask(&store->db, "PRAGMA page_count", &pages->count, err) &&
	       store_db_ask(&store->db, "PRAGMA freelist_count", &pages->free, err);
}

/* Events are deleted from 15/16 of the bound on, so that there is room for the next ones. */
static uint64_t bytes_over(const struct pages *pages, uint64_t keep_bytes)
{
	const uint64_t used = (uint64_t)(pages->count - pages->free) * (uint64_t)pages->size;
	const uint64_t most = keep_bytes - keep_bytes / 16;

	return keep_bytes != 0 && used > most ? used - most : 0;
}

static bool is_to_shrink(const struct pages *pages, uint64_t keep_bytes)
{
	const int64_t spare = pages->count / 4 > SPARE_MIN ? pages->count / 4 : SPARE_MIN;

	return pages->free > spare ||
	       (pages->free > 0 && keep_bytes != 0 && (uint64_t)pages->count * (uint64_t)pages->size > keep_bytes);
}

struct old {
	int64_t rv, last;
	struct store_keys keys;
};

/* The oldest events are deleted as long as both bounds say so. */
struct expiry {
	int64_t before; /* the last occurrence was before it */
	uint64_t bytes; /* of JSON: events are deleted until they had so many */
};

/* -1 and *err, or how many there are. */
static int find_old(struct store *store, const struct expiry *expiry, struct old *old, evrec_error *err)
{
	sqlite3_stmt *statement = store->statements[STORE_OLDEST];
	uint64_t bytes = 0;
	int n = 0, row = 1;

	(void)sqlite3_bind_int64(statement, 1, expiry->before);
	(void)sqlite3_bind_int64(statement, 2, STORE_EXPIRY_ROWS);
	while (bytes < expiry->bytes && (row = store_db_step(&store->db, statement, err)) == 1) {
		old[n++] = (struct old){
			.rv = sqlite3_column_int64(statement, 0),
			.last = sqlite3_column_int64(statement, 6),
			.keys = { sqlite3_column_int64(statement, 1), sqlite3_column_int64(statement, 2),
			          sqlite3_column_int64(statement, 3), sqlite3_column_int64(statement, 4) },
		};
		bytes += (uint64_t)sqlite3_column_int64(statement, 5);
	}
	(void)sqlite3_reset(statement);
	return row < 0 ? -1 : n;
}

static bool delete_all(struct store *store, const struct old *old, int n, evrec_error *err)
{
	for (int i = 0; i < n; i++) {
		if (!store_delete(store, old[i].rv, err)) {
			return false;
		}
	}
	for (int i = 0; i < n; i++) {
		if (!store_release(store, &old[i].keys, err)) {
			return false;
		}
	}
	return true;
}

/* The estimated bytes of a note in the file, by which notes are deleted if the file is full. */
#define NOTE_BYTES 256

static int most_notes(const struct expiry *expiry)
{
	const uint64_t n = expiry->bytes / NOTE_BYTES + 1;

	return n < STORE_EXPIRY_ROWS ? (int)n : STORE_EXPIRY_ROWS;
}

/* In a full file notes up to the last deleted event are deleted, as they are much smaller; all if no event is left. */
static int64_t notes_before(const struct expiry *expiry, const struct old *old, int n)
{
	return expiry->before == INT64_MAX && n > 0 ? time_after(old[n - 1].last, 1) : expiry->before;
}

/* Runs one transaction. Returns the largest number of rows that it deleted from one table, or -1 and *err. */
static int delete_old(struct store *store, const struct expiry *expiry, evrec_error *err)
{
	struct old old[STORE_EXPIRY_ROWS];
	int n, notes = -1;

	if (!store_begin_inside(store, err)) {
		return -1;
	}
	n = find_old(store, expiry, old, err);
	if (n >= 0 && delete_all(store, old, n, err)) {
		notes = store_expire_notes(store, notes_before(expiry, old, n), most_notes(expiry), err);
	}
	if (notes < 0 || !store_commit_inside(store, err)) {
		store_rollback_inside(store);
		return -1;
	}
	return n > notes ? n : notes;
}

/* True if there is an event or a note to delete: saves the lock of a writer if there is none. */
static bool has_old(struct store *store, int64_t before)
{
	sqlite3_stmt *statement = store->statements[STORE_OLDEST];
	int row;

	(void)sqlite3_bind_int64(statement, 1, before);
	(void)sqlite3_bind_int64(statement, 2, 1);
	row = store_db_step(&store->db, statement, NULL);
	(void)sqlite3_reset(statement);
	return row != 0 || store_has_old_notes(store, before);
}

/* Returns some free pages to the file system. A file that was rebuilt without auto_vacuum keeps them. */
static bool shrink(struct store *store, const struct pages *before, bool *more, evrec_error *err)
{
	struct pages after;

	if (!store_db_run(&store->db, "PRAGMA incremental_vacuum(" VACUUM_PAGES ")", err) ||
	    !get_pages(store, &after, err)) {
		return false;
	}
	*more = *more || after.count < before->count;
	return true;
}

static bool expire_inside(struct store *store, int64_t before, uint64_t keep_bytes, bool *more, evrec_error *err)
{
	struct expiry expiry = { before, UINT64_MAX };
	struct pages pages;
	uint64_t over;
	int n = 0;

	if (!get_pages(store, &pages, err)) {
		return false;
	}
	over = bytes_over(&pages, keep_bytes);
	if (over != 0) {
		expiry = (struct expiry){ INT64_MAX, over };
	}
	if (has_old(store, expiry.before)) {
		n = delete_old(store, &expiry, err);
		if (n < 0 || !get_pages(store, &pages, err)) {
			return false;
		}
	}
	*more = over == 0 ? n == STORE_EXPIRY_ROWS : n > 0 && bytes_over(&pages, keep_bytes) != 0;
	return !is_to_shrink(&pages, keep_bytes) || shrink(store, &pages, more, err);
}

bool store_expire(struct store *store, int64_t before, uint64_t keep_bytes, bool *more, evrec_error *err)
{
	bool ok;

	*more = false;
	store_enter(store);
	ok = store->db.db == NULL || expire_inside(store, before, keep_bytes, more, err);
	store_leave(store);
	return ok;
}
