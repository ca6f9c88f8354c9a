#include "store/query_inner.h"

#include <stdlib.h>

/*
 * A plan chooses the streams that are merged: the first possible one of these.
 *
 *   1. the events of the objects of a name or uid, if there are few such objects
 *   2. the events of the facets that pass, if there are very few such facets
 *   3. all events, by their times
 *
 * Events that do not pass the filter are skipped. If too many are, the plan changes, from the present place on: from 1
 * to 2, if there are few facets, as an object may have very many events; from 3 to 2 or 1, however many streams these
 * are, as events that pass may be very rare.
 */
#define VERY_FEW_STREAMS 64 /* that cost less than to look at some thousand events */
#define FEW_STREAMS 2000
#define FEW_FACETS 20000 /* rows of facets that are looked at before it is known how many pass */
#define ALL INT64_MAX

/* A list of numbers of facets or objects. */
struct found {
	int64_t *ids; /* mem_alloc */
	size_t len, room;
};

static bool fail_for_memory(evrec_error *err)
{
	(void)error_set(err, EVREC_ENOMEM, "no memory");
	return false;
}

static bool put_id(struct found *found, int64_t id)
{
	if (found->len == found->room) {
		const size_t room = found->room == 0 ? 64 : 2 * found->room;
		int64_t *ids = mem_realloc(found->ids, room * sizeof(*ids));

		if (ids == NULL) {
			return false;
		}
		found->ids = ids;
		found->room = room;
	}
	found->ids[found->len++] = id;
	return true;
}

/* ---- facets ---- */

/* A query for facets. Its parameter 1 is the most that are wanted, and the next ones are numbers of words. */
struct facets_query {
	struct buf sql;
	int64_t words[2 * (FACETS + 1) * CONDITION_IDS];
	int len;
};

/* A plus before a column keeps SQLite from using its index. */
static void put_column(struct facets_query *q, enum store_facet column, const struct condition *c, bool indexed)
{
	buf_printf(&q->sql, "%s%s IN (", indexed ? "" : "+", facet_columns[column]);
	for (size_t i = 0; i < c->len; i++) {
		buf_put_str(&q->sql, i == 0 ? EVREC_STR("?") : EVREC_STR(", ?"));
		q->words[q->len++] = c->ids[i];
	}
	buf_put_str(&q->sql, EVREC_STR(")"));
}

/* A query for the facets that meet condition `first`, by the index of column `indexed`, and the first `n` conditions. */
static void make_facets_query(struct facets_query *q, const struct filter *f, size_t first, size_t n,
                              enum store_facet indexed)
{
	*q = (struct facets_query){ .len = 0 };
	buf_put_str(&q->sql, EVREC_STR("SELECT id FROM facets WHERE ?1 > 0 AND "));
	put_column(q, indexed, &f->conditions[first], true);
	for (size_t i = 0; i < n; i++) {
		const struct condition *c = &f->conditions[i];

		if (i == first) {
			continue;
		}
		buf_put_str(&q->sql, EVREC_STR(" AND ("));
		put_column(q, c->column, c, false);
		if (c->or_related) {
			buf_put_str(&q->sql, EVREC_STR(" OR "));
			put_column(q, FACET_RELATED_KIND, c, false);
		}
		buf_put_str(&q->sql, EVREC_STR(")"));
	}
	buf_put_str(&q->sql, EVREC_STR(" LIMIT ?1"));
	(void)buf_cstr(&q->sql);
}

/* Runs a query for numbers, whose parameter 1 is the most that are wanted. */
static bool run(struct store_db *d, sqlite3_stmt *statement, int64_t max, struct found *found, evrec_error *err)
{
	int row;

	(void)sqlite3_bind_int64(statement, 1, max);
	while ((row = store_db_step(d, statement, err)) == 1) {
		if (!put_id(found, sqlite3_column_int64(statement, 0))) {
			return fail_for_memory(err);
		}
	}
	return row == 0;
}

static bool run_facets_query(struct store_db *d, const struct facets_query *q, int64_t max, struct found *found,
                             evrec_error *err)
{
	sqlite3_stmt *statement = q->sql.failed ? NULL : store_db_prepare(d, q->sql.data, err);
	bool ok;

	if (statement == NULL) {
		return q->sql.failed ? fail_for_memory(err) : false;
	}
	for (int i = 0; i < q->len; i++) {
		(void)sqlite3_bind_int64(statement, 2 + i, q->words[i]);
	}
	ok = run(d, statement, max, found, err);
	(void)sqlite3_finalize(statement);
	return ok;
}

/* Up to `max` facets that meet condition `first`, by the index of column `indexed`, and the first `n` conditions. */
static bool find_in(const struct filter *f, struct store_db *d, size_t first, size_t n, enum store_facet indexed,
                    int64_t max, struct found *found, evrec_error *err)
{
	struct facets_query q;
	bool ok;

	make_facets_query(&q, f, first, n, indexed);
	ok = run_facets_query(d, &q, max, found, err);
	buf_free(&q.sql);
	return ok;
}

/* Likewise, by that condition's indexes. */
static bool find_by(const struct filter *f, struct store_db *d, size_t first, size_t n, int64_t max,
                    struct found *found, evrec_error *err)
{
	const struct condition *c = &f->conditions[first];

	return find_in(f, d, first, n, c->column, max, found, err) &&
	       (!c->or_related || find_in(f, d, first, n, FACET_RELATED_KIND, max, found, err));
}

/* Counts the facets that meet each condition, unless there are many. */
static bool count_few(struct filter *f, struct store_db *d, evrec_error *err)
{
	struct found found = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < f->len; i++) {
		found.len = 0;
		ok = find_by(f, d, i, 0, FEW_STREAMS + 1, &found, err);
		if (found.len <= FEW_STREAMS) {
			f->conditions[i].facets_max = (int64_t)found.len;
		}
	}
	mem_free(found.ids);
	return ok;
}

/* The condition that the fewest facets can meet. */
static size_t rarest(const struct filter *f)
{
	size_t first = 0;

	for (size_t i = 1; i < f->len; i++) {
		if (f->conditions[i].facets_max < f->conditions[first].facets_max) {
			first = i;
		}
	}
	return first;
}

/* ---- objects ---- */

/* The other conditions are tested for each event. */
static const char *const objects_by_name[2] = { "SELECT id FROM objects WHERE name = ?2 LIMIT ?1",
	                                        "SELECT id FROM objects WHERE name = ?2 AND ns = ?3 LIMIT ?1" };
static const char objects_by_uid[] = "SELECT id FROM objects WHERE uid = ?2 LIMIT ?1";

/* A test that names objects; NULL if none does. */
static const struct object_test *naming_test(const struct filter *f, enum object_role *role)
{
	for (*role = ROLE_REGARDING; *role < ROLES; (*role)++) {
		const evrec_object_filter *o = f->tests[*role].filter;

		if (o != NULL && (o->name.len != 0 || o->uid.len != 0)) {
			return &f->tests[*role];
		}
	}
	return NULL;
}

static bool find_objects(const struct object_test *test, struct store_db *d, int64_t max, struct found *found,
                         evrec_error *err)
{
	const bool by_uid = test->filter->uid.len != 0;
	sqlite3_stmt *statement = store_db_prepare(d, by_uid ? objects_by_uid : objects_by_name[test->ns != 0], err);
	bool ok;

	if (statement == NULL) {
		return false;
	}
	store_bind_str(statement, 2, by_uid ? test->filter->uid : test->filter->name);
	(void)sqlite3_bind_int64(statement, 3, test->ns);
	ok = run(d, statement, max, found, err);
	(void)sqlite3_finalize(statement);
	return ok;
}

/* ---- the plan ---- */

static int compare_ids(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Merges the streams of these numbers in one index, or in that of related objects too. */
static bool use(struct plan *p, struct store_db *d, const struct found *found, enum stream_index index,
                bool and_related, evrec_error *err)
{
	struct stream *all = mem_zalloc((2 * found->len + 1) * sizeof(*all));
	size_t n = 0;

	if (all == NULL) {
		return fail_for_memory(err);
	}
	for (size_t i = 0; i < found->len; i++) {
		/* A facet is found twice if both of its kinds match. */
		if (i != 0 && found->ids[i] == found->ids[i - 1]) {
			continue;
		}
		all[n++] = (struct stream){ .key = found->ids[i], .index = index };
		if (and_related) {
			all[n++] = (struct stream){ .key = found->ids[i], .index = STREAM_RELATED };
		}
	}
	return streams_use(&p->streams, d, all, n, err);
}

static void sort(struct found *found)
{
	if (found->len != 0) {
		qsort(found->ids, found->len, sizeof(*found->ids), compare_ids);
	}
}

static bool use_all(struct plan *p, struct store_db *d, evrec_error *err)
{
	int64_t any = 0;

	return use(p, d, &(struct found){ &any, 1, 1 }, STREAM_LAST, false, err);
}

/* Uses the facets that pass, if there are at most `max`. Sets *used. */
static bool try_facets(struct plan *p, struct store_db *d, int64_t max, bool *used, evrec_error *err)
{
	struct found found = { 0 };
	const int64_t wanted = max == ALL ? ALL : max + 1;
	bool ok;

	*used = false;
	if (p->filter.len == 0 || (max != ALL && p->filter.conditions[rarest(&p->filter)].facets_max > FEW_FACETS)) {
		return true;
	}
	ok = find_by(&p->filter, d, rarest(&p->filter), p->filter.len, wanted, &found, err);
	if (ok && (int64_t)found.len < wanted) {
		sort(&found);
		*used = true;
		ok = use(p, d, &found, STREAM_FACET, false, err);
	}
	mem_free(found.ids);
	return ok;
}

/* Likewise those of the objects of a name or uid. */
static bool try_objects(struct plan *p, struct store_db *d, int64_t max, bool *used, evrec_error *err)
{
	struct found found = { 0 };
	const int64_t wanted = max == ALL ? ALL : max + 1;
	enum object_role role;
	const struct object_test *test = naming_test(&p->filter, &role);
	bool ok;

	*used = false;
	if (test == NULL) {
		return true;
	}
	ok = find_objects(test, d, wanted, &found, err);
	if (ok && (int64_t)found.len < wanted) {
		*used = true;
		ok = use(p, d, &found, STREAM_REGARDING, role == ROLE_MENTIONS, err);
	}
	mem_free(found.ids);
	return ok;
}

bool plan_begin(struct plan *p, struct store_db *d, evrec_error *err)
{
	enum object_role role;
	bool used;

	p->begun = true;
	if (!filter_resolve(&p->filter, d, err)) {
		return false;
	}
	if (p->filter.nothing) {
		return use(p, d, &(struct found){ 0 }, STREAM_LAST, false, err);
	}
	if (!count_few(&p->filter, d, err)) {
		return false;
	}
	if (!try_objects(p, d, FEW_STREAMS, &used, err)) {
		return false;
	}
	if (used) {
		p->fallback = p->filter.len != 0 ? FALLBACK_FEW_FACETS : FALLBACK_NONE;
		return true;
	}
	if (!try_facets(p, d, VERY_FEW_STREAMS, &used, err)) {
		return false;
	}
	if (used) {
		p->fallback = FALLBACK_NONE;
		return true;
	}
	p->fallback = naming_test(&p->filter, &role) != NULL ? FALLBACK_OBJECTS
	              : p->filter.len != 0                   ? FALLBACK_FACETS
	                                                     : FALLBACK_NONE;
	return use_all(p, d, err);
}

bool plan_change(struct plan *p, struct store_db *d, evrec_error *err)
{
	const enum fallback fallback = p->fallback;
	bool used;

	p->fallback = FALLBACK_NONE;
	switch (fallback) {
	case FALLBACK_FEW_FACETS:
		return try_facets(p, d, FEW_STREAMS, &used, err);
	case FALLBACK_FACETS:
		return try_facets(p, d, ALL, &used, err);
	case FALLBACK_OBJECTS:
		return try_objects(p, d, ALL, &used, err);
	case FALLBACK_NONE:
		break;
	}
	return true;
}
