#include "books.h"

struct fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	evrec_reference object;
	evrec_emit what;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;

	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("host"), NULL);
	f->watch = evrec_broadcaster_watch(f->b, 100, NULL);
	f->object = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("a"), .ns = EVREC_STR("shop") };
	f->what = (evrec_emit){ .regarding = &f->object,
		                .type = EVREC_STR("Normal"),
		                .reason = EVREC_STR("Started"),
		                .note = EVREC_STR("it runs"),
		                .timestamp = EVREC_UNSET };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_watch_free(f->watch);
	evrec_clock_release(f->clock);
	free(f);
	return 0;
}

/* What is recorded again and again is known by its keys: what is no part of them is looked at each time. */
static void test_again_is_checked(void **state)
{
	struct fixture *f = *state;
	const evrec_pair pair = { EVREC_STR("\xff"), EVREC_STR("v") };
	const evrec_reference nothing = { .name = EVREC_STR("n") };
	const evrec_str bad = EVREC_STR("\xff");
	evrec_stats stats;

	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	f->object.resource_version = bad;
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	f->object.resource_version = EVREC_STR("12");
	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	f->what.action = bad;
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	f->what.action = EVREC_STR("Starting");
	f->what.labels = (evrec_map){ &pair, 1 };
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	f->what.labels = (evrec_map){ NULL, 0 };
	f->what.annotations = (evrec_map){ &pair, 1 };
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	f->what.annotations = (evrec_map){ NULL, 0 };
	f->what.related = &nothing;
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	f->what.related = NULL;
	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	/* And what is a part of them, when it changes. */
	f->what.reason = bad;
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	assert_int_equal(emit(f->r, f->b, &f->what), EVREC_EINVALID);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.broadcast, 4);
	assert_int_equal(stats.invalid, 7);
}

/* Nothing of one event stays in the next. */
static void test_each_is_its_own(void **state)
{
	struct fixture *f = *state;
	const evrec_pair pair = { EVREC_STR("k"), EVREC_STR("v") };
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("n"), .uid = EVREC_STR("u") };
	const evrec_fields *fields;
	evrec_event *first, *second;

	f->what.related = &node;
	f->what.action = EVREC_STR("Starting");
	f->what.labels = f->what.annotations = (evrec_map){ &pair, 1 };
	f->what.timestamp = T0 - EVREC_SECOND;
	f->what.note = EVREC_STR("bytes: \xff");
	f->object.field_path = f->object.uid = f->object.resource_version = EVREC_STR("x");
	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	f->object = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("a") };
	f->what = (evrec_emit){ .regarding = &f->object,
		                .type = EVREC_STR("Normal"),
		                .reason = EVREC_STR("Started"),
		                .timestamp = EVREC_UNSET };
	assert_int_equal(emit(f->r, f->b, &f->what), 0);
	first = evrec_watch_next(f->watch);
	second = evrec_watch_next(f->watch);
	fields = evrec_event_fields(second);
	assert_string_equal(fields->ns.data, "default");
	assert_int_equal(fields->related.kind.len + fields->related.uid.len + fields->action.len + fields->note.len, 0);
	assert_int_equal(fields->labels.len + fields->annotations.len, 0);
	assert_int_equal(fields->regarding.uid.len + fields->regarding.field_path.len, 0);
	assert_int_equal(fields->first, T0);
	assert_int_equal(fields->last, T0);
	assert_string_not_equal(fields->name.data, evrec_event_fields(first)->name.data);
	assert_string_equal(evrec_event_fields(first)->note.data, "bytes: \xef\xbf\xbd");
	evrec_event_release(first);
	evrec_event_release(second);
}

/* Nor of a call that was refused, for whatever reason. */
static void test_refused_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	const evrec_reference unknown = { .name = EVREC_STR("n"), .uid = EVREC_STR("u") };
	evrec_event *event;

	f->what.related = &unknown;
	assert_int_equal(evrec_recorder_emit(f->r, &f->what, NULL), EVREC_EINVALID);
	f->what.related = NULL;
	assert_int_equal(evrec_recorder_emit(f->r, &f->what, NULL), 0);
	event = evrec_watch_next(f->watch);
	assert_int_equal(evrec_event_fields(event)->related.name.len, 0);
	assert_int_equal(evrec_event_fields(event)->related.uid.len, 0);
	evrec_event_release(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_again_is_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_is_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_leaves_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
