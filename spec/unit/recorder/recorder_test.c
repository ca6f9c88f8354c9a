/* A recorder: events that repeat are checked each time, and no part of one event is left in the next. */
#include "stats_invariants.h"

#include <unistd.h>

struct emit_fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	evrec_reference object;
	evrec_emit emit;
};

static int set_up(void **state)
{
	struct emit_fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;

	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(
		f->b, &(evrec_recorder_options){ .component = EVREC_STR("test"), .host = EVREC_STR("host") }, NULL);
	f->watch = evrec_broadcaster_watch(f->b, 100, NULL);
	f->object = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("a"), .ns = EVREC_STR("shop") };
	f->emit = (evrec_emit){ .regarding = &f->object,
		                .type = EVREC_STR("Normal"),
		                .reason = EVREC_STR("Started"),
		                .note = EVREC_STR("it runs"),
		                .timestamp = EVREC_UNSET };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct emit_fixture *f = *state;

	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_watch_free(f->watch);
	evrec_clock_release(f->clock);
	free(f);
	return 0;
}

/* A repeated event is recognized by its keys; fields outside the keys are checked each time. */
static void test_repeated_events_are_checked(void **state)
{
	struct emit_fixture *f = *state;
	const evrec_pair pair = { EVREC_STR("\xff"), EVREC_STR("v") };
	const evrec_reference nothing = { .name = EVREC_STR("n") };
	const evrec_str bad = EVREC_STR("\xff");
	evrec_stats stats;

	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	f->object.resource_version = bad;
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	f->object.resource_version = EVREC_STR("12");
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	f->emit.action = bad;
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	f->emit.action = EVREC_STR("Starting");
	f->emit.labels = (evrec_map){ &pair, 1 };
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	f->emit.labels = (evrec_map){ NULL, 0 };
	f->emit.annotations = (evrec_map){ &pair, 1 };
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	f->emit.annotations = (evrec_map){ NULL, 0 };
	f->emit.related = &nothing;
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	f->emit.related = NULL;
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	/* A changed field of the keys is checked too. */
	f->emit.reason = bad;
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.broadcast, 4);
	assert_int_equal(stats.invalid, 7);
}

static void test_no_field_is_left_in_the_next_event(void **state)
{
	struct emit_fixture *f = *state;
	const evrec_pair pair = { EVREC_STR("k"), EVREC_STR("v") };
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("n"), .uid = EVREC_STR("u") };
	const evrec_fields *fields;
	evrec_event *first, *second;

	f->emit.related = &node;
	f->emit.action = EVREC_STR("Starting");
	f->emit.labels = f->emit.annotations = (evrec_map){ &pair, 1 };
	f->emit.timestamp = T0 - EVREC_SECOND;
	f->emit.note = EVREC_STR("bytes: \xff");
	f->object.field_path = f->object.uid = f->object.resource_version = EVREC_STR("x");
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	f->object = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("a") };
	f->emit = (evrec_emit){ .regarding = &f->object,
		                .type = EVREC_STR("Normal"),
		                .reason = EVREC_STR("Started"),
		                .timestamp = EVREC_UNSET };
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	first = evrec_watch_next(f->watch);
	second = evrec_watch_next(f->watch);
	fields = evrec_event_fields(second);
	assert_str(fields->ns, "default");
	assert_int_equal(fields->related.kind.len + fields->related.uid.len + fields->action.len + fields->note.len, 0);
	assert_int_equal(fields->labels.len + fields->annotations.len, 0);
	assert_int_equal(fields->regarding.uid.len + fields->regarding.field_path.len, 0);
	assert_int_equal(fields->first, T0);
	assert_int_equal(fields->last, T0);
	assert_false(str_eq(fields->name, evrec_event_fields(first)->name));
	assert_str(evrec_event_fields(first)->note, "bytes: \xef\xbf\xbd");
	evrec_event_release(first);
	evrec_event_release(second);
}

static void test_refused_event_leaves_no_field(void **state)
{
	struct emit_fixture *f = *state;
	const evrec_reference unknown = { .name = EVREC_STR("n"), .uid = EVREC_STR("u") };
	evrec_event *event;

	f->emit.related = &unknown;
	assert_int_equal(evrec_recorder_emit(f->r, &f->emit, NULL), EVREC_EINVALID);
	f->emit.related = NULL;
	assert_int_equal(evrec_recorder_emit(f->r, &f->emit, NULL), 0);
	event = evrec_watch_next(f->watch);
	assert_int_equal(evrec_event_fields(event)->related.name.len, 0);
	assert_int_equal(evrec_event_fields(event)->related.uid.len, 0);
	evrec_event_release(event);
}

static evrec_recorder *labelled(const struct emit_fixture *f, evrec_map map, evrec_error *err)
{
	evrec_recorder_options options;

	evrec_recorder_options_init(&options);
	options.labels = options.annotations = map;
	return evrec_recorder_new(f->b, &options, err);
}

/* Records the event of the fixture, and checks both maps of what the watch got: "key=value " for each pair. */
static void check_maps(const struct emit_fixture *f, evrec_recorder *r, const char *labels, const char *annotations)
{
	evrec_event *event;
	const evrec_fields *fields;
	const evrec_map *maps[2];
	char text[256];

	assert_int_equal(evrec_recorder_emit(r, &f->emit, NULL), 0);
	event = evrec_watch_next(f->watch);
	fields = evrec_event_fields(event);
	maps[0] = &fields->labels;
	maps[1] = &fields->annotations;
	for (size_t m = 0; m < 2; m++) {
		size_t len = 0;

		text[0] = '\0';
		for (size_t i = 0; i < maps[m]->len; i++) {
			const evrec_pair *pair = &maps[m]->pairs[i];

			len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s=%.*s ", (int)pair->key.len,
			                        pair->key.data, (int)pair->value.len, pair->value.data);
		}
		assert_string_equal(text, m == 0 ? labels : annotations);
	}
	evrec_event_release(event);
}

static void test_default_maps_yield_to_a_calls_own_keys(void **state)
{
	struct emit_fixture *f = *state;
	char key[] = "team";
	const evrec_pair defaults[] = { { { key, 4 }, EVREC_STR("a") }, { EVREC_STR("tier"), EVREC_STR("web") } };
	const evrec_pair own[] = { { EVREC_STR("x"), EVREC_STR("y") }, { EVREC_STR("team"), EVREC_STR("b") } };
	evrec_recorder *r = labelled(f, (evrec_map){ defaults, 2 }, NULL);

	key[0] = '?';
	check_maps(f, r, "team=a tier=web ", "team=a tier=web ");
	f->emit.labels = (evrec_map){ own, 2 };
	check_maps(f, r, "x=y team=b tier=web ", "team=a tier=web ");
	f->emit.annotations = (evrec_map){ own, 1 };
	check_maps(f, r, "x=y team=b tier=web ", "x=y team=a tier=web ");
	f->emit.labels = f->emit.annotations = (evrec_map){ NULL, 0 };
	check_maps(f, r, "team=a tier=web ", "team=a tier=web ");
	check_maps(f, f->r, "", "");
	evrec_recorder_free(r);
}

static void test_default_maps_are_checked(void **state)
{
	struct emit_fixture *f = *state;
	static char large[200 * 1024];
	const evrec_pair bad = { EVREC_STR("\xff"), EVREC_STR("v") };
	const evrec_pair whole = { EVREC_STR("k"), { large, sizeof(large) } };
	const evrec_pair other = { EVREC_STR("l"), { large, sizeof(large) } };
	evrec_pair many[65];
	evrec_recorder *r;
	evrec_error err;

	for (size_t i = 0; i < 65; i++) {
		many[i] = (evrec_pair){ EVREC_STR("key"), EVREC_STR("v") };
	}
	memset(large, 'x', sizeof(large));
	assert_null(labelled(f, (evrec_map){ &bad, 1 }, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	assert_string_equal(err.message, "labels: key: not valid UTF-8");
	assert_null(labelled(f, (evrec_map){ many, 65 }, &err));
	assert_string_equal(err.message, "labels: more than 64");
	/* Together with those of a call they are bounded as a call's alone. */
	r = labelled(f, (evrec_map){ &whole, 1 }, NULL);
	assert_int_equal(evrec_recorder_emit(r, &f->emit, NULL), 0);
	f->emit.annotations = (evrec_map){ &other, 1 };
	assert_int_equal(evrec_recorder_emit(f->r, &f->emit, NULL), 0);
	assert_int_equal(evrec_recorder_emit(r, &f->emit, &err), EVREC_EINVALID);
	assert_string_equal(err.message, "annotations: more than 262144 bytes");
	evrec_recorder_free(r);
	r = evrec_recorder_new(f->b, NULL, NULL);
	f->emit.annotations = (evrec_map){ NULL, 0 };
	assert_int_equal(evrec_recorder_emit(r, &f->emit, NULL), 0);
	evrec_recorder_free(r);
}

/* A forked child counts anew, also if the broadcaster has watches and no sink. */
static void test_reason_and_action_have_at_most_1024_bytes(void **state)
{
	struct emit_fixture *f = *state;
	evrec_str *const fields[] = { &f->emit.reason, &f->emit.action };
	static char text[1025];
	size_t i;

	memset(text, 'x', sizeof(text));
	for (i = 0; i < 2; i++) {
		*fields[i] = (evrec_str){ text, 1024 };
		assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
		fields[i]->len = 1025;
		assert_int_equal(checked_emit(f->r, f->b, &f->emit), EVREC_EINVALID);
		*fields[i] = EVREC_STR("R");
	}
}

static void test_reporting_instance_is_an_option(void **state)
{
	struct emit_fixture *f = *state;
	static char text[1025];
	evrec_recorder_options options = { .component = EVREC_STR("test"),
		                           .host = EVREC_STR("host"),
		                           .instance = EVREC_STR("pod-1") };
	evrec_event *event;
	evrec_recorder *r;
	evrec_error err;

	r = evrec_recorder_new(f->b, &options, &err);
	assert_non_null(r);
	assert_int_equal(checked_emit(r, f->b, &f->emit), 0);
	evrec_recorder_free(r);
	event = evrec_watch_next(f->watch);
	assert_str(evrec_event_fields(event)->instance, "pod-1");
	assert_str(evrec_event_fields(event)->host, "host");
	evrec_event_release(event);
	assert_int_equal(checked_emit(f->r, f->b, &f->emit), 0);
	event = evrec_watch_next(f->watch);
	assert_str(evrec_event_fields(event)->instance, "host");
	evrec_event_release(event);
	memset(text, 'x', sizeof(text));
	options.instance = (evrec_str){ text, 1024 };
	r = evrec_recorder_new(f->b, &options, &err);
	assert_non_null(r);
	evrec_recorder_free(r);
	options.instance.len = 1025;
	assert_null(evrec_recorder_new(f->b, &options, &err));
	assert_string_equal(err.message, "instance: 1025 bytes, more than 1024");
	options.instance = EVREC_STR("\xff");
	assert_null(evrec_recorder_new(f->b, &options, &err));
	assert_string_equal(err.message, "instance: not valid UTF-8");
}

static void test_child_of_a_broadcaster_without_sinks_counts_anew(void **state)
{
	struct emit_fixture *f = *state;
	evrec_stats stats;
	pid_t child;

	assert_int_equal(evrec_recorder_emit(f->r, &f->emit, NULL), 0);
	child = fork();
	if (child == 0) {
		bool counted = evrec_recorder_emit(f->r, &f->emit, NULL) == 0;

		evrec_broadcaster_get_stats(f->b, &stats);
		_exit(counted && stats.recorded == 1 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.recorded, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_repeated_events_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_field_is_left_in_the_next_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_event_leaves_no_field, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_default_maps_yield_to_a_calls_own_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_default_maps_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reason_and_action_have_at_most_1024_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reporting_instance_is_an_option, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_child_of_a_broadcaster_without_sinks_counts_anew, set_up,
		                                tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
