/* Every allocation fails once: clocks, events, references, JSON and keys; the correlator. */
#include "alloc_failure.h"

#include "event/event.h"

#include <signal.h>

#define LEAST_VALUES 60
#define LEAST_CORRELATOR 20

static const evrec_pair labels[] = { { { "app", 3 }, { "web\xFF", 4 } }, { { "k\xC3", 2 }, { NULL, 0 } } };
static const evrec_owner owner = { { "ReplicaSet", 10 }, { "apps/v1", 7 }, { "web", 3 }, { "u", 1 }, 1, -1 };

static evrec_fields sample(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = EVREC_STR("web-0.17");
	f.ns = EVREC_STR("shop");
	f.labels = f.annotations = (evrec_map){ labels, 2 };
	f.owners = &owner;
	f.owners_len = 1;
	f.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	f.related = f.regarding;
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("BackOff");
	f.note = EVREC_STR("Back-off \xFF restarting");
	f.component = f.controller = EVREC_STR("kubelet");
	f.host = f.instance = EVREC_STR("node-1");
	f.first = f.last = f.event_time = f.series_last = T0;
	f.count = f.series_count = 3;
	return f;
}

static void check_object_text(char *text, size_t len)
{
	alloc_failure_check(text != NULL);
	if (text != NULL) {
		assert_int_equal(strlen(text), len);
		assert_int_equal(text[0], '{');
		assert_int_equal(text[len - 1], '}');
	}
	evrec_free(text);
}

static void check_read_back(const char *text, size_t len)
{
	evrec_event *event = event_from_json((evrec_str){ text, len });

	alloc_failure_check(event != NULL);
	if (event != NULL) {
		const evrec_fields *f = evrec_event_fields(event);

		assert_true(f->labels.len == 2 && f->annotations.len == 2 && f->owners_len == 1);
	}
	evrec_event_release(event);
}

/* A text that is read by way of jansson's tree. */
static void read_tree(void)
{
	evrec_event *event = event_from_json(
		EVREC_STR("{\"metadata\":{\"name\":\"\\u0061\",\"namespace\":\"b\",\"labels\":{\"c\":\"d\"}}}"));

	alloc_failure_check(event != NULL);
	if (event != NULL) {
		assert_true(str_eq(evrec_event_fields(event)->name, EVREC_STR("a")));
	}
	evrec_event_release(event);
}

/* The note is no UTF-8, which takes memory. */
static void write_patch(const evrec_fields *fields)
{
	char patch[512];
	const size_t len = evrec_fields_write_patch(fields, patch, sizeof(patch));

	alloc_failure_check(len != 0);
	assert_true(len == 0 || (patch[0] == '{' && patch[len - 1] == '}'));
}

static void with_event(evrec_event *event)
{
	size_t len = 0;
	char *text;

	assert_ptr_equal(evrec_event_retain(event), event);
	text = evrec_fields_json(evrec_event_fields(event), EVREC_CORE_V1, &len);
	check_object_text(text, len);
	text = evrec_fields_json(evrec_event_fields(event), EVREC_EVENTS_V1, &len);
	if (text != NULL) {
		check_read_back(text, len);
	}
	check_object_text(text, len);
	text = evrec_fields_patch(evrec_event_fields(event), &len);
	check_object_text(text, len);
	write_patch(evrec_event_fields(event));
	read_tree();
	evrec_event_release(event);
}

static void values(void)
{
	const evrec_fields fields = sample();
	evrec_error err = { 0 };
	evrec_event *event;
	evrec_clock *clock;
	evrec_prepared_ref *ref;

	alloc_failure_arm();
	clock = evrec_clock_fake(T0);
	alloc_failure_check(clock != NULL);
	if (clock != NULL) {
		evrec_clock_set(evrec_clock_retain(clock), T0 + 1);
		assert_true(evrec_clock_is_fake(clock) && evrec_clock_now(clock) == T0 + 1);
		evrec_clock_release(clock);
	}
	evrec_clock_release(clock);
	ref = evrec_prepared_ref_new(&fields.regarding, &err);
	alloc_failure_check_error(ref != NULL, &err);
	if (ref != NULL) {
		assert_str(evrec_prepared_ref_fields(evrec_prepared_ref_retain(ref))->name, "web-0");
		evrec_prepared_ref_release(ref);
	}
	evrec_prepared_ref_release(ref);
	event = evrec_event_new(&fields);
	alloc_failure_check(event != NULL);
	if (event != NULL) {
		with_event(event);
	}
	evrec_event_release(event);
}

static bool yes(void *ctx, const char *key)
{
	(void)key;
	++*(unsigned *)ctx;
	return true;
}

static bool yes_end(void *ctx)
{
	return yes(ctx, NULL);
}

static bool yes_string(void *ctx, evrec_str key, evrec_str value)
{
	(void)value;
	return yes(ctx, key.data);
}

static bool yes_integer(void *ctx, const char *key, int64_t value)
{
	(void)value;
	return yes(ctx, key);
}

static bool yes_boolean(void *ctx, const char *key, bool value)
{
	(void)value;
	return yes(ctx, key);
}

#define ROOM 2048

/* An event in the caller's memory, and its patch. */
static void write_to_given_memory(void)
{
	static _Alignas(max_align_t) char memory[ROOM], other[ROOM];
	evrec_fields fields = sample(), read;
	evrec_event event = { .packed = NULL };

	fields.note = EVREC_STR("Back-off restarting");
	event.fields = fields;
	assert_true(evrec_packed_room(&fields) <= ROOM);
	evrec_packed_read(evrec_packed_make(memory, &fields), &read);
	assert_str(read.note, "Back-off restarting");
	assert_true(evrec_packed_size(&event) <= ROOM);
	evrec_packed_read(evrec_packed_copy(other, &event), &read);
	assert_str(read.note, "Back-off restarting");
	event.packed = evrec_packed_make(memory, &fields);
	assert_true(evrec_packed_size(&event) <= ROOM);
	evrec_packed_read(evrec_packed_copy(other, &event), &read);
	assert_true(evrec_fields_write_patch(&read, memory, ROOM) > 50);
}

/* Calls that succeed although all allocations fail. */
static void nothing_needed(void)
{
	static const evrec_visitor visitor = { yes, yes, yes_end, yes_string, yes_integer, yes_boolean, yes };
	const evrec_fields fields = sample();
	evrec_broadcaster_options broadcaster;
	evrec_kubernetes_options kubernetes;
	evrec_limits limits;
	evrec_emit emit;
	evrec_correlator_options correlator;
	char text[EVREC_RFC3339_SIZE];
	const int signal = SIGUSR2;
	unsigned visited = 0;
	enum evrec_api api;
	evrec_clock *clock;
	int64_t ns;

	alloc_failure_arm();
	assert_true(evrec_seconds_to_ns(1.5, &ns) && ns == 3 * EVREC_SECOND / 2);
	assert_int_equal(evrec_rfc3339_format(T0, true, text), 27);
	assert_true(evrec_rfc3339_parse(str_from(text), &ns) && ns == T0);
	assert_true(evrec_api_parse(EVREC_STR("events.k8s.io/v1"), &api) && api == EVREC_EVENTS_V1);
	clock = evrec_clock_retain(evrec_clock_real());
	assert_true(evrec_clock_now(clock) > T0 && !evrec_clock_is_fake(clock));
	evrec_clock_release(clock);
	assert_true(evrec_fields_visit(&fields, EVREC_CORE_V1, NULL, &visitor, &visited) && visited > 50);
	write_to_given_memory();
	evrec_broadcaster_options_init(&broadcaster);
	evrec_limits_init(&limits);
	evrec_emit_init(&emit);
	assert_true(emit.timestamp == EVREC_UNSET && emit.regarding == NULL && emit.note.len == 0);
	evrec_kubernetes_options_init(&kubernetes);
	evrec_correlator_options_init(&correlator);
	assert_true(broadcaster.max_message_bytes == 1024 && kubernetes.max_in_flight == 32 &&
	            limits.max_pending == 10000 && correlator.burst_size == 25);
	assert_int_equal(evrec_on_signal(&signal, 1, 0, NULL), 0);
	assert_string_equal(evrec_code_name(EVREC_ENOMEM), "memory");
	assert_string_equal(evrec_why_name(EVREC_NEW), "new");
	assert_string_equal(evrec_cause_name(EVREC_CAUSE_MEMORY), "memory");
}

/* ---- the correlator ---- */

static bool choose_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	*aggregate_key = event->regarding.name;
	*local_key = event->note;
	return true;
}

static bool choose_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	(void)ctx;
	*message = event->note;
	return true;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	*key = event->reason;
	return true;
}

/* Each correlated event is counted; an event that failed for want of memory is not. */
static void correlate_some(evrec_correlator *c)
{
	evrec_correlator_stats stats;
	uint64_t answered = 0;
	char message[16];
	int i;

	for (i = 0; i < 30; i++) {
		evrec_fields event = sample();
		evrec_correlation r;
		int code;

		(void)snprintf(message, sizeof(message), "m%d", i / 2);
		event.note = str_from(message);
		event.name = (evrec_str){ NULL, 0 };
		event.regarding.name = i % 5 == 0 ? EVREC_STR("UPPER") : EVREC_STR("web-0");
		code = evrec_correlator_correlate(c, &event, T0 + i, &r);
		assert_true(code == 0 || code == EVREC_ENOMEM);
		alloc_failure_check(code == 0);
		answered += code == 0;
		if (code == 0) {
			assert_true(r.event.name.len > 0 && r.event.count > 0);
			evrec_correlator_answered(
				c, r.handle, i % 3 == 0 ? EVREC_STR("a-longer-name-than-before-it") : EVREC_STR(""),
				EVREC_STR("12345"));
		}
		event.name = EVREC_STR("answered");
		code = evrec_correlator_update_state(c, &event);
		assert_true(code == 0 || code == EVREC_ENOMEM);
		alloc_failure_ignore(); /* evrec_correlator_answered does not tell whether it had memory */
	}
	evrec_correlator_get_stats(c, &stats);
	assert_int_equal(stats.correlated, answered);
	assert_int_equal(stats.correlated, stats.why[0] + stats.why[1] + stats.why[2] + stats.why[3]);
}

static void correlator_with(const evrec_correlator_options *options)
{
	evrec_fields event = sample();
	evrec_error err = { 0 };
	evrec_correlator *c;
	evrec_correlation r;

	alloc_failure_arm();
	c = evrec_correlator_new(options, &err);
	alloc_failure_check_error(c != NULL, &err);
	if (c != NULL) {
		correlate_some(c);
		alloc_failure_disarm();
		assert_int_equal(evrec_correlator_correlate(c, &event, T0, &r), 0);
		assert_int_equal(evrec_correlator_update_state(c, &event), 0);
	}
	evrec_correlator_free(c);
}

static void correlator(void)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.lru_cache_size = 20;
	options.max_events = 4;
	options.burst_size = 20;
	correlator_with(&options);
}

static void correlator_with_callbacks(void)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.lru_cache_size = 3;
	options.max_events = 2;
	options.key_func = choose_keys;
	options.message_func = choose_message;
	options.spam_key_func = choose_spam_key;
	correlator_with(&options);
}

/* ---- tests ---- */

static void test_values_survive_failures(void **state)
{
	(void)state;
	alloc_failure_run(values, LEAST_VALUES);
}

static void test_some_calls_need_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(nothing_needed, 0);
}

static void test_correlator_survives_failures(void **state)
{
	(void)state;
	alloc_failure_run(correlator, LEAST_CORRELATOR);
}

static void test_correlator_with_callbacks_survives_failures(void **state)
{
	(void)state;
	alloc_failure_run(correlator_with_callbacks, LEAST_CORRELATOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_survive_failures),
		cmocka_unit_test(test_some_calls_need_no_memory),
		cmocka_unit_test(test_correlator_survives_failures),
		cmocka_unit_test(test_correlator_with_callbacks_survives_failures),
	};

	alloc_failure_hook_jansson();
	return cmocka_run_group_tests_name("memory: values", tests, NULL, NULL);
}
