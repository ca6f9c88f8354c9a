#include "store/query_inner.h"

#include "spool/sqlite_guard.h"

/*
 * Both queries return the place from which the next page continues, and a row as JSON. Parameters: ?1 that place, ?2
 * the number of rows, ?3 a name, ?4 a namespace.
 */
#define OCCURRENCES                                                                                                    \
	"SELECT time, json_object('namespace', ns, 'name', name, 'time', time, 'count', count) FROM occurrences "      \
	"WHERE name = ?3 AND ns = ?4 AND time > ?1 ORDER BY time LIMIT ?2"
#define SUPPRESSIONS(reporter, where)                                                                                  \
	"SELECT id, json_object('object', json_object('kind', kind, 'apiVersion', api_version, 'namespace', ns, "      \
	"'name', name, 'uid', uid), 'type', type, 'reason', reason, 'stage', stage, 'cause', cause, 'key', key, "      \
	"'message', message, 'count', count, 'first', first, 'last', last, " reporter ") FROM suppressions "           \
	"WHERE id < ?1 AND last >= ?8 AND first < ?9 AND " where
#define OF_OBJECT                                                                                                      \
	"(?4 = '' OR ns = ?4) AND (?5 = '' OR kind = ?5 COLLATE NOCASE) AND (?6 = '' OR api_version = ?6) AND "        \
	"(?7 = '' OR uid = ?7) "
#define NEWEST_FIRST "ORDER BY id DESC LIMIT ?2"

/* Uses an index to find the suppressions with an object's name, and those without a name: the numbers of lost notes. */
#define OF_NAME(reporter)                                                                                              \
	SUPPRESSIONS(reporter, "name = ?3 AND " OF_OBJECT)                                                             \
	"UNION ALL " SUPPRESSIONS(reporter, "name = '' ") NEWEST_FIRST
#define OF_ANY_NAME(reporter) SUPPRESSIONS(reporter, "?3 = '' AND (stage = 'lost' OR (" OF_OBJECT ")) ") NEWEST_FIRST

/* A store of version 2 has no reporters. */
#define REPORTER "'component', component, 'host', host"
#define NO_REPORTER "'component', '', 'host', ''"

/* By whether the store has reporters. */
static const char *const of_name[2] = { OF_NAME(NO_REPORTER), OF_NAME(REPORTER) };
static const char *const of_any_name[2] = { OF_ANY_NAME(NO_REPORTER), OF_ANY_NAME(REPORTER) };

struct store_notes {
	struct reader_link link; /* its first member */
	struct store_db db;
	const evrec_query *query;
	sqlite3_stmt *statement;
	bool of_occurrences;
	int64_t place;
	size_t left; /* of the limit; SIZE_MAX: there is none */
	bool ended;
	struct buf page; /* texts, each with its NUL */
	size_t next;     /* an offset in the page */
};

static const char *sql_of(const struct store_notes *notes)
{
	const bool reporters = notes->db.version >= SCHEMA_REPORTERS;

	if (notes->of_occurrences) {
		return OCCURRENCES;
	}
	return notes->query->regarding.name.len != 0 ? of_name[reporters] : of_any_name[reporters];
}

static bool open_inside(struct reader_link *reader, evrec_error *err)
{
	struct store_notes *notes = (struct store_notes *)reader;
	const evrec_object_filter *object = &notes->query->regarding;
	sqlite3_stmt *statement;

	if (!store_db_open(&notes->db, STORE_READ, err)) {
		return false;
	}
	statement = notes->statement = store_db_prepare(&notes->db, sql_of(notes), err);
	if (statement == NULL) {
		return false;
	}
	store_bind_str(statement, 3, object->name);
	store_bind_str(statement, 4, object->ns);
	if (!notes->of_occurrences) {
		store_bind_str(statement, 5, object->kind);
		store_bind_str(statement, 6, object->api_version);
		store_bind_str(statement, 7, object->uid);
		(void)sqlite3_bind_int64(statement, 8, notes->query->since);
		(void)sqlite3_bind_int64(statement, 9, notes->query->before);
	}
	return true;
}

static void close_inside(struct reader_link *reader)
{
	struct store_notes *notes = (struct store_notes *)reader;

	store_db_finalize_all(&notes->statement, 1);
	store_db_close(&notes->db);
}

static struct store_notes *notes_open(evrec_str path, const evrec_query *query, bool of_occurrences, evrec_error *err)
{
	struct store_notes *notes;

	if (!store_readers_allowed(err)) {
		return NULL;
	}
	notes = mem_zalloc(sizeof(*notes));
	if (notes == NULL || !store_db_init(&notes->db, path)) {
		mem_free(notes);
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	notes->query = query;
	notes->of_occurrences = of_occurrences;
	notes->place = of_occurrences ? INT64_MIN : INT64_MAX;
	notes->left = query->limit == 0 ? SIZE_MAX : query->limit;
	store_readers_add(&notes->link, &notes->db, close_inside);
	if (!store_readers_open(&notes->link, open_inside, err)) {
		store_notes_free(notes);
		return NULL;
	}
	return notes;
}

struct store_notes *store_read_occurrences(evrec_str path, const evrec_query *query, evrec_error *err)
{
	return notes_open(path, query, true, err);
}

struct store_notes *store_read_suppressions(evrec_str path, const evrec_query *query, evrec_error *err)
{
	return notes_open(path, query, false, err);
}

static bool read_page(struct store_notes *notes, evrec_error *err)
{
	const size_t most = notes->left < STORE_PAGE ? notes->left : STORE_PAGE;
	size_t n = 0;
	int row;

	buf_clear(&notes->page);
	notes->next = 0;
	(void)sqlite3_bind_int64(notes->statement, 1, notes->place);
	(void)sqlite3_bind_int64(notes->statement, 2, (int64_t)most);
	while ((row = store_db_step(&notes->db, notes->statement, err)) == 1) {
		const char *json = (const char *)sqlite3_column_text(notes->statement, 1);

		notes->place = sqlite3_column_int64(notes->statement, 0);
		buf_put(&notes->page, json, json == NULL ? 0 : (size_t)sqlite3_column_bytes(notes->statement, 1));
		buf_put(&notes->page, "", 1);
		n++;
	}
	(void)sqlite3_reset(notes->statement);
	notes->ended = n < most || n == notes->left;
	notes->left -= notes->left == SIZE_MAX ? 0 : n;
	if (row == 0 && notes->page.failed) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return row == 0;
}

int store_notes_next(struct store_notes *notes, evrec_str *json, evrec_error *err)
{
	bool ok;

	if (!store_readers_check(&notes->link, err)) {
		return EVREC_ESYSTEM;
	}
	if (notes->next == notes->page.len) {
		if (notes->ended) {
			return EVREC_READ_END;
		}
		sqlite_guard_enter();
		ok = read_page(notes, err);
		sqlite_guard_leave();
		if (!ok) {
			return err == NULL ? EVREC_ESYSTEM : err->code;
		}
	}
	if (notes->next == notes->page.len) {
		return EVREC_READ_END;
	}
	*json = str_from(notes->page.data + notes->next);
	notes->next += json->len + 1;
	return EVREC_READ_EVENT;
}

void store_notes_free(struct store_notes *notes)
{
	if (notes != NULL && store_readers_end(&notes->link)) {
		store_db_fini(&notes->db);
		buf_free(&notes->page);
		mem_free(notes);
	}
}
