/* Queries of a store: what they find is what a plain filter over a list finds, and no plan reads a whole table. */
#include "store_fixture.h"

#include <strings.h>

#define EVENTS 400
#define QUERIES 1500

static const char *const namespaces[] = { "shop", "bank", "kube-system" };
static const char *const kinds[] = { "Pod", "Node", "pod", "Job" };
static const char *const objects[] = { "web-0", "web-1", "node-1", "node-2", "db-0" };
static const char *const apis[] = { "v1", "batch/v1" };
static const char *const uids[] = { "", "u-1", "u-2" };
static const char *const types[] = { "Normal", "Warning" };
static const char *const reasons[] = { "Started", "Killing", "Failed", "BackOff" };
static const char *const actions[] = { "", "Binding", "Start" };
static const char *const controllers[] = { "kubelet", "scheduler" };
static const char *const instances[] = { "", "node-1", "node-2" };

#define ANY(list, random) evrec_string((list)[unit_random(random) % (sizeof(list) / sizeof((list)[0]))])

struct listed {
	char name[32];
	evrec_fields event;
	int64_t last;
};

static struct listed list[EVENTS]; /* large: not on the stack */

static evrec_reference any_reference(uint64_t *random)
{
	return (evrec_reference){
		.kind = ANY(kinds, random),
		.api_version = ANY(apis, random),
		.ns = ANY(namespaces, random),
		.name = ANY(objects, random),
		.uid = ANY(uids, random),
	};
}

/* The last occurrences are distinct, so that the order is. */
static void make_event(struct listed *e, size_t i, uint64_t *random)
{
	e->last = T0 + (int64_t)((unit_random(random) % 1000) * EVENTS + i) * 1000000;
	(void)snprintf(e->name, sizeof(e->name), "e%zu.%zx", i, i);
	e->event = store_event(e->name, "", e->last);
	e->event.ns = ANY(namespaces, random);
	e->event.regarding = any_reference(random);
	if (unit_random(random) % 2 == 0) {
		e->event.related = any_reference(random);
	}
	e->event.type = ANY(types, random);
	e->event.reason = ANY(reasons, random);
	e->event.action = ANY(actions, random);
	e->event.controller = ANY(controllers, random);
	e->event.instance = ANY(instances, random);
	e->event.component = EVREC_STR("overridden");
	e->event.host = e->event.instance.len == 0 ? EVREC_STR("node-2") : EVREC_STR("overridden");
	if (e->event.instance.len == 0) {
		e->event.instance = (evrec_str){ NULL, 0 };
	}
}

/* ---- the plain filter ---- */

static bool is(evrec_str wanted, evrec_str value)
{
	return wanted.len == 0 || str_eq(wanted, value);
}

static bool is_object(const evrec_object_filter *o, const evrec_reference *r)
{
	return (o->kind.len == 0 ||
	        (o->kind.len == r->kind.len && strncasecmp(o->kind.data, r->kind.data, r->kind.len) == 0)) &&
	       is(o->api_version, r->api_version) && is(o->ns, r->ns) && is(o->name, r->name) && is(o->uid, r->uid);
}

static bool passes(const evrec_query *q, const struct listed *e)
{
	const evrec_fields *f = &e->event;
	bool is_type = q->types_len == 0;

	for (size_t i = 0; i < q->types_len; i++) {
		is_type = is_type || str_eq(q->types[i], f->type);
	}
	return is_type && is(q->ns, f->ns) && is(q->reason, f->reason) && is(q->action, f->action) &&
	       is(q->controller, f->controller) && is(q->instance, f->instance.len != 0 ? f->instance : f->host) &&
	       is_object(&q->regarding, &f->regarding) &&
	       (is_object(&q->mentions, &f->regarding) ||
	        (f->related.name.len != 0 && is_object(&q->mentions, &f->related))) &&
	       e->last >= q->since && e->last < q->before;
}

static int by_last(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return (x->last > y->last) - (x->last < y->last);
}

/* `list` is sorted. */
static void expect(const evrec_query *q, struct buf *names)
{
	size_t n = 0;

	buf_clear(names);
	for (size_t i = 0; i < EVENTS; i++) {
		const struct listed *e = &list[q->order == EVREC_OLDEST ? i : EVENTS - 1 - i];

		if (passes(q, e) && (q->limit == 0 || n < q->limit)) {
			buf_printf(names, "%s ", e->name);
			n++;
		}
	}
}

/* ---- random queries ---- */

static evrec_object_filter any_object(uint64_t *random)
{
	const uint64_t which = unit_random(random);
	evrec_object_filter o = { 0 };

	if (which % 4 != 0) {
		o.name = ANY(objects, random);
	}
	if (which / 4 % 2 == 0) {
		o.kind = ANY(kinds, random);
	}
	if (which / 8 % 4 == 0) {
		o.api_version = ANY(apis, random);
	}
	if (which / 32 % 4 == 0) {
		o.ns = ANY(namespaces, random);
	}
	if (which / 128 % 4 == 0) {
		o.uid = ANY(uids, random);
	}
	return o;
}

static void add_filter(evrec_query *q, evrec_str *type, uint64_t *random)
{
	switch (unit_random(random) % 11) {
	case 0:
		q->ns = ANY(namespaces, random);
		break;
	case 1:
		q->regarding = any_object(random);
		break;
	case 2:
		q->mentions = any_object(random);
		break;
	case 3:
		q->controller = ANY(controllers, random);
		break;
	case 4:
		q->instance = ANY(instances, random);
		break;
	case 5:
		*type = ANY(types, random);
		q->types = type;
		q->types_len = 1;
		break;
	case 6:
		q->reason = unit_random(random) % 8 == 0 ? EVREC_STR("Unheard") : ANY(reasons, random);
		break;
	case 7:
		q->action = ANY(actions, random);
		break;
	case 8:
		q->since = list[unit_random(random) % EVENTS].last;
		break;
	case 9:
		q->before = list[unit_random(random) % EVENTS].last;
		break;
	default:
		q->limit = 1 + unit_random(random) % 200;
		break;
	}
}

/* Each filter alone, in pairs, and more. */
static void check_random_query(const char *path, uint64_t *random, struct buf *names)
{
	evrec_query q = store_query_all();
	evrec_str type;

	for (uint64_t filters = unit_random(random) % 4; filters > 0; filters--) {
		add_filter(&q, &type, random);
	}
	q.order = unit_random(random) % 2 == 0 ? EVREC_NEWEST : EVREC_OLDEST;
	expect(&q, names);
	store_fixture_check(path, &q, buf_cstr(names));
}

static void test_queries_equal_a_plain_filter_and_no_plan_scans(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	uint64_t random = unit_seed();
	struct store *store;
	struct buf names = { 0 };
	evrec_error err;
	bool more;

	/* Before the plans are noted: the steps of the schema copy a table whole. */
	store_fixture_make(path);
	store_fixture_trace();
	store = store_fixture_open(path);
	/* Each event is written twice, the first time with other fields. */
	for (size_t i = 0; i < 2 * EVENTS; i++) {
		struct listed *e = &list[i % EVENTS];
		const evrec_str ns = e->event.ns;

		make_event(e, i % EVENTS, &random);
		e->event.ns = i < EVENTS ? e->event.ns : ns;
		store_fixture_put(store, &e->event);
	}
	assert_true(store_expire(store, T0, 1U << 20, &more, &err));
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), EVENTS);
	qsort(list, EVENTS, sizeof(list[0]), by_last);
	for (size_t i = 0; i < EVENTS; i++) {
		list[i].event.name = evrec_string(list[i].name);
	}
	for (unsigned i = 0; i < QUERIES; i++) {
		check_random_query(path, &random, &names);
	}
	assert_true(store_expire(store, list[EVENTS / 2].last, 0, &more, &err));
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), EVENTS - EVENTS / 2);
	buf_free(&names);
	store_free(store);
	store_fixture_check_plans(path, 50);
}

/* ---- many events ---- */

#define MANY 14000 /* more than one read looks at */
#define RARE 2500  /* more facets than are merged at first */

/*
 * The oldest RARE events are Warnings, of as many facets; three of these have the reason "Rare". All later ones are Normal.
 * All are about one object.
 */
static void put_many(struct store *store)
{
	evrec_error err;

	assert_true(store_begin(store, &err));
	for (int i = 0; i < MANY; i++) {
		char name[32], host[32], json[64];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		(void)snprintf(host, sizeof(host), "node-%d", i % RARE);
		(void)snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
		event = store_event(name, "busy", T0 + i);
		event.host = evrec_string(host);
		if (i < RARE) {
			event.type = EVREC_STR("Warning");
		}
		if (i < 3) {
			event.reason = EVREC_STR("Rare");
		}
		assert_true(store_put(store, &event, evrec_string(json), &err));
	}
	assert_true(store_commit(store, &err));
}

static void test_rare_events_are_found_behind_many_others(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_str warning = EVREC_STR("Warning");
	evrec_query q = store_query_all();
	char *found;

	put_many(store);
	q.types = &warning;
	q.types_len = 1;
	q.limit = 3;
	store_fixture_check(path, &q, "e.2499 e.2498 e.2497 ");
	q.limit = 0;
	found = store_fixture_find(path, &q);
	assert_true(strlen(found) > (size_t)RARE * 4);
	assert_non_null(strstr(found, " e.1000 e.999 e.998 "));
	free(found);
	q = store_query_all();
	q.mentions.name = EVREC_STR("busy");
	q.reason = EVREC_STR("Rare");
	store_fixture_check(path, &q, "e.2 e.1 e.0 ");
	/* All pages of one object. */
	q.reason = (evrec_str){ NULL, 0 };
	q.order = EVREC_OLDEST;
	found = store_fixture_find(path, &q);
	assert_true(strncmp(found, "e.0 e.1 e.2 ", 12) == 0);
	assert_string_equal(found + strlen(found) - 16, "e.13998 e.13999 ");
	free(found);
	store_free(store);
}

/* With a small limit, too, events that do not pass are not walked through to the end. */
static void test_a_small_limit_changes_the_plan(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_str warning = EVREC_STR("Warning");
	evrec_query q = store_query_all();

	put_many(store);
	q.types = &warning;
	q.types_len = 1;
	q.limit = 1;
	store_fixture_trace();
	store_fixture_check(path, &q, "e.2499 ");
	assert_true(store_fixture_has_run("WHERE facet = ?6"));
	store_free(store);
	store_fixture_check_plans(path, 3);
}

#define PASSING 300

static void put_some(struct store *store, int first, int n, const char *type, int hosts)
{
	for (int i = first; i < first + n; i++) {
		char name[32], host[32], json[64];
		evrec_fields event;
		evrec_error err;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		(void)snprintf(host, sizeof(host), "node-%d", hosts + i % 2000);
		(void)snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
		event = store_event(name, "busy", T0);
		event.type = evrec_string(type);
		event.host = evrec_string(host);
		assert_true(store_put(store, &event, evrec_string(json), &err));
	}
}

static size_t count_found(const char *path, const evrec_query *q)
{
	char *found = store_fixture_find(path, q);
	size_t n = 0;

	for (const char *c = found; *c != '\0'; c++) {
		n += *c == ' ';
	}
	free(found);
	return n;
}

/* The Warnings have smaller and larger numbers than the Normals, of smaller and larger facets. */
static void test_a_changed_plan_goes_on_among_events_of_one_time(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_str warning = EVREC_STR("Warning");
	evrec_query q = store_query_all();
	evrec_error err;

	assert_true(store_begin(store, &err));
	put_some(store, 0, PASSING, "Warning", 0);
	put_some(store, 2000, 10000, "Normal", 0);
	put_some(store, 20000, PASSING, "Warning", 0);
	put_some(store, 22000, PASSING, "Warning", 2000);
	assert_true(store_commit(store, &err));
	q.types = &warning;
	q.types_len = 1;
	assert_int_equal(count_found(path, &q), 3 * PASSING);
	q.order = EVREC_OLDEST;
	assert_int_equal(count_found(path, &q), 3 * PASSING);
	store_free(store);
}

/* Spellings of one kind that case alone tells apart. */
static void test_too_many_spellings_are_told(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_query q = store_query_all();
	struct store_cursor *cursor;
	struct store_row row;
	evrec_error err;

	q.regarding.kind = EVREC_STR("abcdefg");
	for (int i = 0; i < 65; i++) {
		char name[32], kind[8] = "abcdefg";
		evrec_fields event;

		for (int letter = 0; letter < 7; letter++) {
			kind[letter] = (char)(i >> letter & 1 ? kind[letter] - 'a' + 'A' : kind[letter]);
		}
		(void)snprintf(name, sizeof(name), "a.%d", i);
		event = store_event(name, "web-0", T0 + i);
		event.regarding.kind = evrec_string(kind);
		store_fixture_put(store, &event);
		if (i == 63) {
			char *found = store_fixture_find(path, &q);

			assert_true(strncmp(found, "a.63 a.62 ", 10) == 0 && strstr(found, " a.0 ") != NULL);
			free(found);
		}
	}
	cursor = store_query(evrec_string(path), &q, &err);
	assert_non_null(cursor);
	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_EINVALID);
	unit_check_contains(err.message, "abcdefg: the store has more than 64 words that match");
	store_cursor_free(cursor);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_queries_equal_a_plain_filter_and_no_plan_scans),
		TMPDIR_TEST(test_rare_events_are_found_behind_many_others),
		TMPDIR_TEST(test_a_small_limit_changes_the_plan),
		TMPDIR_TEST(test_a_changed_plan_goes_on_among_events_of_one_time),
		TMPDIR_TEST(test_too_many_spellings_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
