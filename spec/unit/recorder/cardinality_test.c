/* A recorder whose reasons, actions or name hold data is told of, once; the stats say how many values there were. */
#include "unit.h"

#include "alloc_failure.h"
#include "no_memory_recorder.h"
#include "recorder/cardinality.h"

#define MANY (CARDINALITY_MAX + 1)

struct fixture {
	evrec_broadcaster *b;
	evrec_recorder *r;
	unsigned errors;
	char message[512], name[32];
	evrec_recorder *inner; /* records MANY reasons inside of the next callback */
	bool inside;           /* the callback runs */
	bool nested;           /* on_error was called meanwhile */
};

static int record(evrec_recorder *r, const char *reason, const char *action, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("a") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = str_from(reason),
		                  .action = str_from(action),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	return evrec_recorder_emit(r, &emit, NULL);
}

/* Records n events whose reason, or if that is given, whose action ends in a number from `first` on. */
static void record_numbered(evrec_recorder *r, const char *reason, unsigned first, unsigned n)
{
	char text[32];

	for (unsigned i = first; i < first + n; i++) {
		(void)snprintf(text, sizeof(text), "%s%u", reason != NULL ? "Act" : "Failed", i);
		assert_int_equal(record(r, reason != NULL ? reason : text, reason != NULL ? text : "", "m"), 0);
	}
}

static void record_inside(struct fixture *f)
{
	evrec_recorder *r = f->inner;

	if (r != NULL) {
		f->inner = NULL;
		f->inside = true;
		record_numbered(r, NULL, 0, MANY);
		f->inside = false;
	}
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct fixture *f = ctx;

	f->errors++;
	f->nested = f->nested || f->inside;
	(void)snprintf(f->message, sizeof(f->message), "%s", message);
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	record_inside(f);
}

static void on_event(void *ctx, evrec_event *event)
{
	(void)event;
	record_inside(ctx);
}

static evrec_recorder *make(struct fixture *f, const char *component)
{
	const evrec_recorder_options options = { .component = str_from(component) };

	return evrec_recorder_new(f->b, &options, NULL);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.on_error = on_error;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = make(f, "my-operator");
	*state = f;
	return f->r == NULL;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	free(f);
	return 0;
}

static void check_counts(const evrec_recorder *r, size_t reasons, size_t actions)
{
	evrec_recorder_stats stats;

	evrec_recorder_get_stats(r, &stats);
	assert_int_equal(stats.reasons, reasons);
	assert_int_equal(stats.actions, actions);
}

static size_t components(const struct fixture *f)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(f->b, &stats);
	return stats.components;
}

static void test_tells_of_reasons_once(void **state)
{
	struct fixture *f = *state;

	record_numbered(f->r, NULL, 0, CARDINALITY_MAX);
	record_numbered(f->r, NULL, 0, CARDINALITY_MAX);
	check_counts(f->r, CARDINALITY_MAX, 0);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->errors, 0);
	record_numbered(f->r, NULL, CARDINALITY_MAX, 1);
	assert_int_equal(f->errors, 1);
	assert_string_equal(f->name, "cardinality");
	assert_string_equal(f->message, "recorder my-operator: more than 100 different reasons, e.g. \"Failed98\", "
	                                "\"Failed99\", \"Failed100\": a reason is a constant; put data into the "
	                                "message");
	record_numbered(f->r, NULL, MANY, 1000);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->errors, 1);
	check_counts(f->r, MANY, 0);
}

/* The action is no part of the keys by which a repeated event is known. */
static void test_tells_of_the_actions_of_a_repeated_event(void **state)
{
	struct fixture *f = *state;

	record_numbered(f->r, "R", 0, CARDINALITY_MAX);
	assert_int_equal(f->errors, 0);
	record_numbered(f->r, "R", CARDINALITY_MAX, 1);
	assert_int_equal(f->errors, 1);
	assert_string_equal(f->message, "recorder my-operator: more than 100 different actions, e.g. \"Act98\", "
	                                "\"Act99\", \"Act100\": an action is a constant; put data into the message");
	record_numbered(f->r, "R", MANY, 1000);
	assert_int_equal(f->errors, 1);
	check_counts(f->r, 1, MANY);
}

static void test_counts_no_other_field(void **state)
{
	struct fixture *f = *state;
	char note[32];

	for (unsigned i = 0; i < 10 * MANY; i++) {
		(void)snprintf(note, sizeof(note), "took %u s", i);
		assert_int_equal(record(f->r, i % 2 == 0 ? "R" : "S", "A", note), 0);
	}
	check_counts(f->r, 2, 1);
	assert_int_equal(f->errors, 0);
}

static void test_tells_of_components_in_the_next_call(void **state)
{
	struct fixture *f = *state;
	char name[32];

	for (unsigned i = 1; i < 2 * MANY; i++) {
		(void)snprintf(name, sizeof(name), "request-%u", i);
		evrec_recorder_free(make(f, name));
		evrec_recorder_free(make(f, "my-operator"));
		evrec_recorder_free(make(f, ""));
		assert_int_equal(components(f), i < MANY ? i + 1 : MANY);
	}
	assert_int_equal(f->errors, 0);
	assert_int_equal(record(f->r, "R", "", "m"), 0);
	assert_int_equal(f->errors, 1);
	assert_string_equal(f->name, "cardinality");
	assert_string_equal(f->message,
	                    "more than 100 different components of recorders, e.g. \"request-98\", "
	                    "\"request-99\", \"request-100\": a component is a constant; keep its recorder");
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->errors, 1);
}

static void test_recorders_are_counted_apart_and_listed(void **state)
{
	struct fixture *f = *state;
	const evrec_recorder_options options = { .component = EVREC_STR("third"), .host = EVREC_STR("node-1") };
	evrec_recorder *second = make(f, ""), *third = evrec_recorder_new(f->b, &options, NULL);
	evrec_recorder_stats stats;

	record_numbered(f->r, NULL, 0, 60);
	record_numbered(second, NULL, 60, 60);
	assert_int_equal(f->errors, 0);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, NULL), f->r);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, f->r), second);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, second), third);
	assert_null(evrec_broadcaster_next_recorder(f->b, third));
	check_counts(second, 60, 0);
	evrec_recorder_get_stats(third, &stats);
	assert_int_equal(stats.instance.len, 6);
	evrec_recorder_free(second);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, f->r), third);
	evrec_recorder_free(f->r);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, NULL), third);
	f->r = make(f, "fourth");
	evrec_recorder_free(third);
	assert_ptr_equal(evrec_broadcaster_next_recorder(f->b, NULL), f->r);
	assert_null(evrec_broadcaster_next_recorder(f->b, f->r));
}

/* on_error is called once no other callback runs. */
static void test_waits_until_a_callback_is_done(void **state)
{
	struct fixture *f = *state;
	evrec_watch *watch = evrec_broadcaster_start_event_watcher(f->b, on_event, f, NULL);
	evrec_recorder *inner = f->inner = make(f, "");

	assert_int_equal(record(f->r, "R", "", "m"), 0);
	check_counts(inner, MANY, 0);
	assert_int_equal(f->errors, 1);
	assert_false(f->nested);
	unit_check_contains(f->message, "recorder without a component: more than 100 different reasons");
	/* A repeated event's call tells nothing; a poll does. */
	evrec_recorder_free(inner);
	inner = f->inner = make(f, "");
	assert_int_equal(record(f->r, "R", "", "m"), 0);
	assert_int_equal(f->errors, 1);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->errors, 2);
	assert_false(f->nested);
	evrec_recorder_free(inner);
	evrec_watch_free(watch);
}

static void test_on_error_may_record_too_many_itself(void **state)
{
	struct fixture *f = *state;
	evrec_recorder *inner = f->inner = make(f, "inner");
	evrec_stats stats;

	record_numbered(f->r, NULL, 0, MANY);
	assert_int_equal(f->errors, 2);
	assert_false(f->nested);
	unit_check_contains(f->message, "recorder inner: ");
	evrec_broadcaster_poll(f->b);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.broadcast, 2 * MANY);
	assert_int_equal(f->errors, 2);
	evrec_recorder_free(inner);
}

static void test_shows_values_that_are_long_or_no_text_for_people(void **state)
{
	const char umlauts[] = "\xC3\xA4"
			       "bcdefghijklmnopqrstuvwxyz0123\xC3\xA4";
	const char *const texts[] = { "short", "\x1B[2J", umlauts };
	struct cardinality c = { .len = 0 };
	struct line line = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_true(cardinality_add(&c, str_from(texts[i])));
		assert_false(cardinality_add(&c, str_from(texts[i])));
	}
	assert_false(cardinality_is_due(&c));
	cardinality_put(&c, "values", &line);
	assert_string_equal(line.text, "more than 100 different values, e.g. \"short\", \"\\x1B[2J\", "
	                               "\"\xC3\xA4"
	                               "bcdefghijklmnopqrstuvwxyz0123\"");
}

/* A line that allocations fail for is made all the same, and is told in the summary, as it is of no lost event. */
static void tell_in_a_line(void)
{
	struct no_memory_recorder f = { 0 };
	evrec_broadcaster_options options;
	char line[EVREC_LINE_SIZE];
	bool told = false;

	evrec_broadcaster_options_init(&options);
	options.loud = true;
	alloc_failure_arm();
	if (no_memory_recorder_open(&f, &options)) {
		for (unsigned i = 0; i < MANY; i++) {
			char reason[32];

			(void)snprintf(reason, sizeof(reason), "Failed%u", i);
			alloc_failure_check(record(f.r, reason, "", "m") == 0);
		}
		check_counts(f.r, MANY, 0);
		while (evrec_broadcaster_next_line(f.b, true, line)) {
			told = told ||
			       strcmp(line, "evrec: cardinality: recorder component: more than 100 different reasons, "
			                    "e.g. \"Failed98\", \"Failed99\", \"Failed100\": a reason is a constant; "
			                    "put data into the message") == 0;
		}
		assert_true(told);
		alloc_failure_disarm();
		(void)evrec_broadcaster_flush(f.b, 0, NULL);
		assert_int_equal(evrec_broadcaster_flush(f.b, 0, NULL), 0);
	}
	no_memory_recorder_close(&f);
}

static void test_is_told_in_a_line_without_memory(void **state)
{
	(void)state;
	alloc_failure_run(tell_in_a_line, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tells_of_reasons_once),
		TEST(test_tells_of_the_actions_of_a_repeated_event),
		TEST(test_counts_no_other_field),
		TEST(test_tells_of_components_in_the_next_call),
		TEST(test_recorders_are_counted_apart_and_listed),
		TEST(test_waits_until_a_callback_is_done),
		TEST(test_on_error_may_record_too_many_itself),
		cmocka_unit_test(test_shows_values_that_are_long_or_no_text_for_people),
		cmocka_unit_test(test_is_told_in_a_line_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
