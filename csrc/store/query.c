#include "store/query_inner.h"

#include "spool/sqlite_guard.h"

#define LOOK_MAX 4000           /* the most events that one read examines */
#define TEXT_MAX (1024U * 1024) /* bytes of JSON after which a read ends */

enum cursor_statement { CURSOR_BODY, CURSOR_NEW, CURSOR_VERSION, CURSOR_STATEMENTS };

static const char *const sources[CURSOR_STATEMENTS] = {
	[CURSOR_BODY] = "SELECT body FROM events WHERE rv = ?1",
	[CURSOR_NEW] = "SELECT rv, facet, last FROM events WHERE rv > ?1 ORDER BY rv LIMIT ?2",
	[CURSOR_VERSION] = "PRAGMA data_version",
};

/* An event that was read; its JSON lies in the page's text. */
struct found_row {
	int64_t rv, last;
	size_t at, len;
};

struct store_cursor {
	struct reader_link link; /* its first member */
	struct store_db db;
	const evrec_query *query;
	struct plan plan; /* of a watch, its filter alone */
	sqlite3_stmt *statements[CURSOR_STATEMENTS];
	bool watch, ended;
	bool reading;    /* of a query: its transaction is open */
	size_t left;     /* of the limit; SIZE_MAX: there is none */
	int64_t rv;      /* of a watch: the last that was seen */
	int64_t version; /* of a watch: the data_version at the last poll that found nothing; 0: none yet */
	struct found_row page[STORE_PAGE];
	size_t page_at, page_len;
	struct buf text;
};

/* ---- the page ---- */

static size_t page_size(const struct store_cursor *c)
{
	return c->left < STORE_PAGE ? c->left : STORE_PAGE;
}

static bool is_page_full(const struct store_cursor *c)
{
	return c->page_len == page_size(c) || c->text.len > TEXT_MAX;
}

/* Reads the event's JSON. */
static bool add_to_page(struct store_cursor *c, int64_t rv, int64_t last, evrec_error *err)
{
	sqlite3_stmt *statement = c->statements[CURSOR_BODY];
	int row;

	(void)sqlite3_bind_int64(statement, 1, rv);
	row = store_db_step(&c->db, statement, err);
	if (row == 1) {
		const char *body = (const char *)sqlite3_column_text(statement, 0);
		const size_t len = (size_t)sqlite3_column_bytes(statement, 0);

		c->page[c->page_len++] = (struct found_row){ rv, last, c->text.len, len };
		buf_put(&c->text, body, body == NULL ? 0 : len);
		buf_put(&c->text, "", 1);
	}
	(void)sqlite3_reset(statement);
	if (c->text.failed) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return row >= 0;
}

/* ---- a query ---- */

/* Reads until the page is full, the events end, or LOOK_MAX were examined. */
static bool fill(struct store_cursor *c, evrec_error *err)
{
	struct plan *p = &c->plan;
	struct place place;

	if (!p->begun && !plan_begin(p, &c->db, err)) {
		return false;
	}
	for (unsigned looked = 0; !is_page_full(c) && looked < LOOK_MAX; looked++) {
		const int more = streams_next(&p->streams, &c->db, &place, err);
		const int passes = more == 1 ? filter_passes(&p->filter, &c->db, place.facet, place.rv, err) : more;

		if (more == 0) {
			c->ended = true;
			return true;
		}
		if (passes < 0 || (passes == 1 && !add_to_page(c, place.rv, place.last, err))) {
			return false;
		}
	}
	return c->text.len > TEXT_MAX || 4 * c->page_len >= page_size(c) || plan_change(p, &c->db, err);
}

/* ---- a watch ---- */

static bool is_in_time(const struct store_cursor *c, int64_t last)
{
	return last >= c->query->since && (last < c->query->before || c->query->before == INT64_MAX);
}

static bool get_version(struct store_cursor *c, int64_t *version, evrec_error *err)
{
	sqlite3_stmt *statement = c->statements[CURSOR_VERSION];
	const int row = store_db_step(&c->db, statement, err);

	*version = row == 1 ? sqlite3_column_int64(statement, 0) : 0;
	(void)sqlite3_reset(statement);
	return row >= 0;
}

static int read_new(struct store_cursor *c, struct place places[STORE_PAGE], evrec_error *err)
{
	sqlite3_stmt *statement = c->statements[CURSOR_NEW];
	int n = 0, row;

	(void)sqlite3_bind_int64(statement, 1, c->rv);
	(void)sqlite3_bind_int64(statement, 2, STORE_PAGE);
	while ((row = store_db_step(&c->db, statement, err)) == 1) {
		places[n++] = (struct place){
			.rv = sqlite3_column_int64(statement, 0),
			.facet = sqlite3_column_int64(statement, 1),
			.last = sqlite3_column_int64(statement, 2),
		};
	}
	(void)sqlite3_reset(statement);
	return row == 0 ? n : -1;
}

/* The number of a word may have changed since the last poll. */
static bool fill_watch(struct store_cursor *c, evrec_error *err)
{
	struct filter *f = &c->plan.filter;
	struct place places[STORE_PAGE];
	const int n = read_new(c, places, err);

	if (n < 0 || (n > 0 && !filter_resolve(f, &c->db, err))) {
		return false;
	}
	for (int i = 0; i < n; i++) {
		const bool wanted = !f->nothing && is_in_time(c, places[i].last);
		const int passes = wanted ? filter_passes(f, &c->db, places[i].facet, places[i].rv, err) : 0;

		if (passes < 0 || (passes == 1 && !add_to_page(c, places[i].rv, places[i].last, err))) {
			return false;
		}
		c->rv = places[i].rv;
	}
	c->ended = n < STORE_PAGE;
	return true;
}

/* ---- both ---- */

/* Each poll of a watch is a transaction of its own. */
static bool look(struct store_cursor *c, evrec_error *err)
{
	const bool ok = store_db_run(&c->db, "BEGIN", err) && fill_watch(c, err);

	/* It has written nothing; after a failure there may be no transaction. */
	(void)store_db_run(&c->db, "COMMIT", ok ? err : NULL);
	return ok;
}

/* SQLite's transaction begins with the first read. */
static bool begin_reading(struct store_cursor *c, evrec_error *err)
{
	c->reading = store_db_run(&c->db, "BEGIN; SELECT id FROM state WHERE id = 1", err);
	return c->reading;
}

static void end_reading(struct store_cursor *c)
{
	if (c->reading) {
		/* After a failure there may be no transaction. */
		(void)store_db_run(&c->db, "COMMIT", NULL);
		c->reading = false;
	}
}

static bool read_page(struct store_cursor *c, evrec_error *err)
{
	bool ok;

	buf_clear(&c->text);
	c->page_at = c->page_len = 0;
	sqlite_guard_enter();
	ok = c->watch ? look(c, err) : fill(c, err);
	if (!ok || c->ended || c->page_len == c->left) {
		end_reading(c);
	}
	sqlite_guard_leave();
	return ok;
}

/* Sets c->ended to whether nothing was written since the last poll that found nothing. */
static bool look_for_news(struct store_cursor *c, evrec_error *err)
{
	int64_t version;
	bool ok;

	sqlite_guard_enter();
	ok = get_version(c, &version, err);
	sqlite_guard_leave();
	if (!ok) {
		return false;
	}
	if (!store_db_is_current(&c->db)) {
		return store_db_refuse(&c->db, " was removed, or another file is there now", err);
	}
	c->ended = version == c->version;
	c->version = version;
	return true;
}

int store_cursor_next(struct store_cursor *c, struct store_row *row, evrec_error *err)
{
	const struct found_row *found;

	if (!store_readers_check(&c->link, err)) {
		return EVREC_ESYSTEM;
	}
	if (c->watch && c->ended && c->page_at == c->page_len && !look_for_news(c, err)) {
		return EVREC_ESYSTEM;
	}
	while (c->page_at == c->page_len) {
		if (c->ended || c->left == 0) {
			return c->watch ? EVREC_READ_WAIT : EVREC_READ_END;
		}
		if (!read_page(c, err)) {
			return err == NULL ? EVREC_ESYSTEM : err->code;
		}
	}
	found = &c->page[c->page_at++];
	c->left -= c->left != SIZE_MAX;
	*row = (struct store_row){ found->rv, found->last, { c->text.data + found->at, found->len } };
	return EVREC_READ_EVENT;
}

static void close_inside(struct reader_link *reader)
{
	struct store_cursor *c = (struct store_cursor *)reader;

	end_reading(c);
	store_db_finalize_all(c->statements, CURSOR_STATEMENTS);
	streams_fini(&c->plan.streams);
	filter_close(&c->plan.filter);
	store_db_close(&c->db);
}

static bool begin_watching(struct store_cursor *c, evrec_error *err)
{
	return get_version(c, &c->version, err) &&
	       store_db_ask(&c->db, "SELECT ifnull(max(rv), 0) FROM events", &c->rv, err);
}

static bool open_inside(struct reader_link *reader, evrec_error *err)
{
	struct store_cursor *c = (struct store_cursor *)reader;

	return store_db_open(&c->db, STORE_READ, err) &&
	       store_db_prepare_all(&c->db, sources, c->statements, CURSOR_STATEMENTS, err) &&
	       filter_open(&c->plan.filter, &c->db, c->query, err) &&
	       (c->watch ? begin_watching(c, err) : begin_reading(c, err));
}

static struct store_cursor *cursor_new(evrec_str path, const evrec_query *query, bool watch, evrec_error *err)
{
	struct store_cursor *c;

	if (!store_readers_allowed(err)) {
		return NULL;
	}
	c = mem_zalloc(sizeof(*c));
	if (c == NULL || !store_db_init(&c->db, path)) {
		mem_free(c);
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	c->query = query;
	c->watch = watch;
	c->left = watch || query->limit == 0 || query->field_selector.len != 0 ? SIZE_MAX : query->limit;
	streams_init(&c->plan.streams, query);
	store_readers_add(&c->link, &c->db, close_inside);
	if (!store_readers_open(&c->link, open_inside, err)) {
		store_cursor_free(c);
		return NULL;
	}
	return c;
}

bool store_load_library(evrec_error *err)
{
	return sqlite_load(err);
}

struct store_cursor *store_query(evrec_str path, const evrec_query *query, evrec_error *err)
{
	return cursor_new(path, query, false, err);
}

struct store_cursor *store_watch(evrec_str path, const evrec_query *query, evrec_error *err)
{
	return cursor_new(path, query, true, err);
}

void store_cursor_free(struct store_cursor *c)
{
	if (c != NULL && store_readers_end(&c->link)) {
		store_db_fini(&c->db);
		buf_free(&c->text);
		mem_free(c);
	}
}
