/* Random files of lines and random queries: a reader gives what a plain filter and sort of all events gives. */
#include "tmpdir.h"

#include "event/event.h"
#include "evrec_read.h"
#include "read/filter.h"

#define RUNS 60
#define LINES 120

/* A few values of each field, so that filters match now and then. */
static evrec_str pick(uint64_t *random, const char *const *of, size_t n)
{
	return str_from(of[unit_random(random) % n]);
}

#define PICK(random, ...)                                                                                              \
	pick(random, (const char *const[]){ __VA_ARGS__ },                                                             \
	     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static evrec_reference random_reference(uint64_t *random)
{
	return (evrec_reference){ .kind = PICK(random, "Pod", "Node", ""),
		                  .api_version = PICK(random, "v1", "apps/v1", ""),
		                  .name = PICK(random, "a", "b", "c"),
		                  .ns = PICK(random, "shop", "other", ""),
		                  .uid = PICK(random, "1", "2", "") };
}

static int64_t random_time(uint64_t *random)
{
	const int64_t seconds = (int64_t)(unit_random(random) % 40);

	return seconds == 0 ? EVREC_UNSET : T0 + seconds * EVREC_SECOND;
}

static evrec_event *random_event(uint64_t *random)
{
	evrec_fields e;

	evrec_fields_init(&e);
	e.name = PICK(random, "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9");
	e.ns = PICK(random, "shop", "other");
	e.regarding = random_reference(random);
	e.related = random_reference(random);
	e.type = PICK(random, "Normal", "Warning");
	e.reason = PICK(random, "Killing", "Pulled", "a,b");
	e.action = PICK(random, "Kill", "");
	e.component = PICK(random, "x", "y", "");
	e.host = PICK(random, "h", "");
	e.controller = PICK(random, "x", "z", "");
	e.instance = PICK(random, "h", "i", "");
	e.last = random_time(random);
	e.event_time = random_time(random);
	e.series_count = (int32_t)(unit_random(random) % 2);
	e.series_last = random_time(random);
	return evrec_event_new(&e);
}

static void set_random_object(evrec_object_filter *filter, uint64_t *random)
{
	switch (unit_random(random) % 4) {
	case 0:
		filter->kind = PICK(random, "pod", "NODE");
		break;
	case 1:
		filter->name = PICK(random, "a", "b");
		break;
	case 2:
		filter->uid = PICK(random, "1", "2");
		break;
	default:
		filter->ns = PICK(random, "shop", "other");
	}
}

static void set_random_filter(evrec_query *q, uint64_t *random)
{
	static const evrec_str warning = { "Warning", 7 };

	switch (unit_random(random) % 11) {
	case 0:
		q->ns = PICK(random, "shop", "other");
		break;
	case 1:
		set_random_object(&q->regarding, random);
		break;
	case 2:
		set_random_object(&q->mentions, random);
		break;
	case 3:
		q->controller = PICK(random, "x", "y");
		break;
	case 4:
		q->instance = PICK(random, "h", "i");
		break;
	case 5:
		q->types = &warning;
		q->types_len = 1;
		break;
	case 6:
		q->reason = PICK(random, "Killing", "a,b");
		break;
	case 7:
		q->action = EVREC_STR("Kill");
		break;
	case 8:
		q->since = T0 + 15 * EVREC_SECOND;
		break;
	case 9:
		q->before = T0 + 25 * EVREC_SECOND;
		break;
	default:
		q->field_selector = PICK(random, "type!=Normal", "reason=a\\,b", "source==x", "reportingComponent!=x");
	}
}

/* The present states, in the order of their last lines, an event of another line being gone. */
struct world {
	evrec_event *events[LINES];
	size_t len;
};

static void add(struct world *w, evrec_event *event)
{
	const evrec_fields *new = evrec_event_fields(event);

	for (size_t i = 0; i < w->len; i++) {
		const evrec_fields *old = evrec_event_fields(w->events[i]);

		if (str_eq(old->name, new->name) && str_eq(old->ns, new->ns)) {
			evrec_event_release(w->events[i]);
			memmove(&w->events[i], &w->events[i + 1], (w->len - i - 1) * sizeof(w->events[0]));
			w->len--;
			break;
		}
	}
	w->events[w->len++] = event;
}

static void write_world(struct world *w, const char *path, uint64_t *random)
{
	FILE *file = fopen(path, "w");
	const size_t lines = unit_random(random) % LINES;

	for (size_t i = 0; i < lines; i++) {
		evrec_event *event = random_event(random);
		char *json = evrec_fields_json(evrec_event_fields(event),
		                               unit_random(random) % 2 == 0 ? EVREC_CORE_V1 : EVREC_EVENTS_V1, NULL);

		assert_true(fprintf(file, "%s\n", json) > 0);
		evrec_free(json);
		add(w, event);
	}
	assert_int_equal(fclose(file), 0);
}

/* The event that the reader gave is in the world, and wanted; it leaves the world. Returns its last time. */
static int64_t take(struct world *w, const struct filter *filter, const evrec_found *found)
{
	const evrec_fields *given = evrec_event_fields(found->event);

	for (size_t i = 0; i < w->len; i++) {
		const evrec_fields *one = evrec_event_fields(w->events[i]);

		if (str_eq(one->name, given->name) && str_eq(one->ns, given->ns)) {
			const int64_t last = event_last(one);

			assert_true(filter_matches(filter, one));
			assert_int_equal(event_last(given), last);
			evrec_event_release(w->events[i]);
			w->events[i] = w->events[--w->len];
			return last;
		}
	}
	fail_msg("an event was told twice, or is none of the file's");
	return 0;
}

/* Of the events that were not told, none would have had to be told before one whose last time is `last`. */
static void check_rest(const struct world *w, const struct filter *filter, bool limited, int64_t last)
{
	for (size_t i = 0; i < w->len; i++) {
		const evrec_fields *one = evrec_event_fields(w->events[i]);

		if (filter_matches(filter, one)) {
			assert_true(limited);
			assert_true(filter->query.order == EVREC_NEWEST ? event_last(one) <= last
			                                                : event_last(one) >= last);
		}
	}
}

static void check_query(struct world *w, const char *path, const evrec_query *query)
{
	evrec_source *source = evrec_source_lines(str_from(path), NULL);
	evrec_reader *reader = evrec_source_query(source, query, NULL);
	struct filter *filter = filter_new(query, NULL);
	const bool newest = query->order == EVREC_NEWEST;
	int64_t before = newest ? INT64_MAX : INT64_MIN;
	evrec_found found;
	size_t n = 0;

	while (evrec_reader_next(reader, EVREC_FOREVER, &found, NULL) == EVREC_READ_EVENT) {
		const int64_t last = take(w, filter, &found);

		assert_true(newest ? last <= before : last >= before);
		before = last;
		n++;
	}
	assert_true(query->limit == 0 || n <= query->limit);
	check_rest(w, filter, query->limit != 0 && n == query->limit, before);
	filter_free(filter);
	evrec_reader_free(reader);
	evrec_source_release(source);
}

static void test_a_reader_gives_what_a_plain_filter_gives(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	uint64_t random = unit_seed();

	for (unsigned run = 0; run < RUNS; run++) {
		struct world w = { .len = 0 };
		evrec_query query;

		evrec_query_init(&query);
		query.order = unit_random(&random) % 2 == 0 ? EVREC_NEWEST : EVREC_OLDEST;
		query.limit = unit_random(&random) % 2 == 0 ? 0 : 1 + unit_random(&random) % 8;
		for (uint64_t filters = unit_random(&random) % 3; filters > 0; filters--) {
			set_random_filter(&query, &random);
		}
		write_world(&w, path, &random);
		check_query(&w, path, &query);
		while (w.len > 0) {
			evrec_event_release(w.events[--w.len]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { TMPDIR_TEST(test_a_reader_gives_what_a_plain_filter_gives) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
