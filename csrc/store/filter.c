#include "store/query_inner.h"

#include "base/utf8.h"

#define FACET_ROW "SELECT ns, type, reason, action, controller, instance, kind, related_kind FROM facets WHERE id = ?1"

static const char *const sources[FILTER_STATEMENTS] = {
	[FILTER_WORD] = "SELECT id, uses FROM words WHERE word = ?1",
	[FILTER_KIND] = "SELECT id, uses FROM words WHERE word = ?1 COLLATE NOCASE",
	[FILTER_FACET] = FACET_ROW,
	[FILTER_EVENT] = "SELECT regarding, related FROM events WHERE rv = ?1",
	[FILTER_OBJECT] = "SELECT kind, api_version, ns, name, uid FROM objects WHERE id = ?1",
};

bool filter_open(struct filter *f, struct store_db *d, const evrec_query *query, evrec_error *err)
{
	f->query = query;
	return store_db_prepare_all(d, sources, f->statements, FILTER_STATEMENTS, err);
}

void filter_close(struct filter *f)
{
	store_db_finalize_all(f->statements, FILTER_STATEMENTS);
}

/* ---- the query's words ---- */

static bool has_id(const struct condition *c, int64_t id)
{
	for (size_t i = 0; i < c->len; i++) {
		if (c->ids[i] == id) {
			return true;
		}
	}
	return false;
}

/* Adds the numbers of a word, unless an equal word has added them; there may be several if case is ignored. */
static bool add_ids(struct filter *f, struct store_db *d, struct condition *c, evrec_str word, evrec_error *err)
{
	sqlite3_stmt *statement = f->statements[c->column == FACET_KIND ? FILTER_KIND : FILTER_WORD];
	int row;

	store_bind_str(statement, 1, word);
	while ((row = store_db_step(d, statement, err)) == 1) {
		const int64_t id = sqlite3_column_int64(statement, 0);

		if (has_id(c, id)) {
			continue;
		}
		if (c->len == CONDITION_IDS) {
			break;
		}
		c->ids[c->len++] = id;
		c->facets_max += sqlite3_column_int64(statement, 1);
	}
	(void)sqlite3_reset(statement);
	if (row == 1) {
		(void)error_set(err, EVREC_EINVALID, "%.*s: the store has more than %d words that match",
		                (int)utf8_floor(word, 64), word.data, CONDITION_IDS);
	}
	return row == 0;
}

/* Adds the condition that the column has one of `n` words; no condition if there are no words. */
static bool add_condition(struct filter *f, struct store_db *d, enum store_facet column, const evrec_str *words,
                          size_t n, evrec_error *err)
{
	struct condition *c = &f->conditions[f->len];

	*c = (struct condition){ .column = column };
	for (size_t i = 0; i < n; i++) {
		if (!add_ids(f, d, c, words[i], err)) {
			return false;
		}
	}
	f->nothing = f->nothing || c->len == 0;
	f->len++;
	return true;
}

static bool add_word(struct filter *f, struct store_db *d, enum store_facet column, evrec_str word, evrec_error *err)
{
	return word.len == 0 || add_condition(f, d, column, &word, 1, err);
}

/* Of a word that only objects have. */
static bool find_word(struct filter *f, struct store_db *d, evrec_str word, int64_t *id, evrec_error *err)
{
	struct condition c = { .column = FACET_NS };

	*id = 0;
	if (word.len == 0) {
		return true;
	}
	if (!add_ids(f, d, &c, word, err)) {
		return false;
	}
	f->nothing = f->nothing || c.len == 0;
	*id = c.ids[0];
	return true;
}

static bool add_object(struct filter *f, struct store_db *d, enum object_role role, const evrec_object_filter *o,
                       evrec_error *err)
{
	struct object_test *test = &f->tests[role];

	*test = (struct object_test){ 0 };
	if (o->kind.len != 0) {
		test->kinds = &f->conditions[f->len];
		if (!add_condition(f, d, FACET_KIND, &o->kind, 1, err)) {
			return false;
		}
		f->conditions[f->len - 1].or_related = role == ROLE_MENTIONS;
	}
	if (o->name.len != 0 || o->uid.len != 0 || o->ns.len != 0 || o->api_version.len != 0) {
		test->filter = o;
	}
	return find_word(f, d, o->ns, &test->ns, err) && find_word(f, d, o->api_version, &test->api_version, err);
}

bool filter_resolve(struct filter *f, struct store_db *d, evrec_error *err)
{
	const evrec_query *q = f->query;

	f->nothing = false;
	f->len = 0;
	memset(&f->facets, 0, sizeof(f->facets));
	memset(f->objects, 0, sizeof(f->objects));
	return add_word(f, d, FACET_NS, q->ns, err) && add_word(f, d, FACET_REASON, q->reason, err) &&
	       (q->types_len == 0 || add_condition(f, d, FACET_TYPE, q->types, q->types_len, err)) &&
	       add_word(f, d, FACET_ACTION, q->action, err) && add_word(f, d, FACET_CONTROLLER, q->controller, err) &&
	       add_word(f, d, FACET_INSTANCE, q->instance, err) &&
	       add_object(f, d, ROLE_REGARDING, &q->regarding, err) &&
	       add_object(f, d, ROLE_MENTIONS, &q->mentions, err);
}

/* ---- tests ---- */

/* Whether the row of the statement, all columns of a facet, passes. */
static bool passes_conditions(const struct filter *f, sqlite3_stmt *facet)
{
	for (size_t i = 0; i < f->len; i++) {
		const struct condition *c = &f->conditions[i];

		if (!has_id(c, sqlite3_column_int64(facet, (int)c->column)) &&
		    !(c->or_related && has_id(c, sqlite3_column_int64(facet, FACET_RELATED_KIND)))) {
			return false;
		}
	}
	return true;
}

static bool is_text(sqlite3_stmt *statement, int column, evrec_str text)
{
	const char *data = (const char *)sqlite3_column_text(statement, column);

	return text.len == 0 ||
	       str_eq(text, (evrec_str){ data, data == NULL ? 0 : (size_t)sqlite3_column_bytes(statement, column) });
}

/* Whether the row of the statement, an object, passes. */
static bool passes_test(const struct object_test *test, sqlite3_stmt *object)
{
	return (test->kinds == NULL || has_id(test->kinds, sqlite3_column_int64(object, 0))) &&
	       (test->api_version == 0 || test->api_version == sqlite3_column_int64(object, 1)) &&
	       (test->ns == 0 || test->ns == sqlite3_column_int64(object, 2)) &&
	       is_text(object, 3, test->filter->name) && is_text(object, 4, test->filter->uid);
}

/* A test of a facet or an object by its row; `test` is NULL for facets. 1, 0, or -1 and *err. */
static int test_row(struct filter *f, struct store_db *d, struct verdicts *verdicts, const struct object_test *test,
                    int64_t id, evrec_error *err)
{
	sqlite3_stmt *statement = f->statements[test == NULL ? FILTER_FACET : FILTER_OBJECT];
	const size_t at = (size_t)id % VERDICTS;
	int row;
	bool passes = false;

	if (verdicts->known[at].id == id) {
		return verdicts->known[at].passes;
	}
	(void)sqlite3_bind_int64(statement, 1, id);
	row = store_db_step(d, statement, err);
	if (row == 1) {
		passes = test == NULL ? passes_conditions(f, statement) : passes_test(test, statement);
	}
	(void)sqlite3_reset(statement);
	if (row < 0) {
		return -1;
	}
	verdicts->known[at].id = id;
	verdicts->known[at].passes = passes;
	return passes;
}

static int test_objects(struct filter *f, struct store_db *d, int64_t regarding, int64_t related, evrec_error *err)
{
	int passes = 1;

	for (enum object_role role = ROLE_REGARDING; passes == 1 && role < ROLES; role++) {
		const struct object_test *test = &f->tests[role];

		if (test->filter == NULL) {
			continue;
		}
		passes = test_row(f, d, &f->objects[role], test, regarding, err);
		if (passes == 0 && role == ROLE_MENTIONS && related != 0) {
			passes = test_row(f, d, &f->objects[role], test, related, err);
		}
	}
	return passes;
}

int filter_passes(struct filter *f, struct store_db *d, int64_t facet, int64_t rv, evrec_error *err)
{
	sqlite3_stmt *statement = f->statements[FILTER_EVENT];
	int64_t regarding = 0, related = 0;
	int passes = f->len == 0 ? 1 : test_row(f, d, &f->facets, NULL, facet, err), row;

	if (passes != 1 || (f->tests[ROLE_REGARDING].filter == NULL && f->tests[ROLE_MENTIONS].filter == NULL)) {
		return passes;
	}
	(void)sqlite3_bind_int64(statement, 1, rv);
	row = store_db_step(d, statement, err);
	if (row == 1) {
		regarding = sqlite3_column_int64(statement, 0);
		related = sqlite3_column_int64(statement, 1);
	}
	(void)sqlite3_reset(statement);
	return row == 1 ? test_objects(f, d, regarding, related, err) : row;
}
