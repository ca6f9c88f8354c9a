/* A write: the event that an item stands for, in the new style and in the old one, and what becomes of it. */
#include "alloc_failure.h"

#include "sink/write.h"

static evrec_fields sample(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = EVREC_STR("web-0.1");
	f.ns = EVREC_STR("shop");
	f.resource_version = EVREC_STR("7");
	f.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop"), .name = EVREC_STR("web-0") };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("BackOff");
	f.action = EVREC_STR("Restarting");
	f.note = EVREC_STR("first");
	f.component = EVREC_STR("kubelet");
	f.host = EVREC_STR("node-1");
	f.controller = EVREC_STR("kubelet");
	f.instance = EVREC_STR("kubelet-node-1");
	f.first = f.last = T0 + 123456789;
	f.count = 1;
	return f;
}

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

/* Occurrence number `count` of the series of `event`, a second after the one before. */
static struct write_draft draft_of(const evrec_fields *event, int32_t count)
{
	return (struct write_draft){
		.new_style = true,
		.note = event->note,
		.last = event->first + (count - 1) * EVREC_SECOND,
		.count = count,
		.get_event = get_event,
		.source = event,
	};
}

static void *make(const evrec_fields *event, int32_t count)
{
	const struct write_draft draft = draft_of(event, count);
	void *item = write_new(&draft);

	assert_non_null(item);
	return item;
}

static void check(const void *item, enum body body, enum evrec_api api, enum reader reader, const char *expected)
{
	struct encoded encoded;

	assert_true(write_encode(item, body, api, reader, &encoded));
	assert_string_equal(encoded.body, expected);
	assert_int_equal(encoded.body_len, strlen(expected));
	assert_string_equal(encoded.ns, "shop");
	encoded_free(&encoded);
}

static void check_patch(const void *item, enum reader reader, const char *expected)
{
	check(item, BODY_PATCH, EVREC_EVENTS_V1, reader, expected);
	check(item, BODY_PATCH, EVREC_CORE_V1, reader, expected);
}

#define METADATA "\"metadata\":{\"name\":\"web-0.1\",\"namespace\":\"shop\"}"
#define POD "{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\"}"
#define EVENT_TIME "\"eventTime\":\"2023-11-14T22:13:20.123456Z\""
#define SERIES_OF_2 "\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:21.123456Z\"}"

/* ---- what is written ---- */

/* The first occurrence has neither series nor state, in either API; the deprecated fields are unset. */
static void test_first_write_in_the_new_style_has_an_event_time_alone(void **state)
{
	evrec_fields event = sample();
	void *item = make(&event, 1);

	(void)state;
	check(item, BODY_CREATE, EVREC_EVENTS_V1, READER_ANY,
	      "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\"," METADATA "," EVENT_TIME ","
	      "\"reportingController\":\"kubelet\",\"reportingInstance\":\"kubelet-node-1\","
	      "\"action\":\"Restarting\",\"reason\":\"BackOff\",\"regarding\":" POD ",\"note\":\"first\","
	      "\"type\":\"Warning\"}");
	check(item, BODY_CREATE, EVREC_CORE_V1, READER_SERVER,
	      "{\"kind\":\"Event\",\"apiVersion\":\"v1\"," METADATA ",\"involvedObject\":" POD ","
	      "\"reason\":\"BackOff\",\"message\":\"first\",\"type\":\"Warning\"," EVENT_TIME ","
	      "\"action\":\"Restarting\",\"reportingComponent\":\"kubelet\","
	      "\"reportingInstance\":\"kubelet-node-1\"}");
	write_free(item);
}

/* An event whose patch was answered by 404 is created with all that its series has counted. */
static void test_create_of_a_series_has_the_series(void **state)
{
	evrec_fields event = sample();
	void *item = make(&event, 2);
	const evrec_fields fields = write_fields(item, BODY_CREATE);

	(void)state;
	assert_int_equal(fields.event_time, T0 + 123456789);
	assert_int_equal(fields.series_count, 2);
	assert_int_equal(fields.series_last, T0 + 123456789 + EVREC_SECOND);
	assert_str(fields.series_state, "Ongoing");
	assert_int_equal(fields.count, 0);
	assert_int_equal(fields.first, EVREC_UNSET);
	assert_int_equal(fields.last, EVREC_UNSET);
	assert_int_equal(fields.component.len + fields.host.len + fields.resource_version.len, 0);
	check(item, BODY_CREATE, EVREC_CORE_V1, READER_SERVER,
	      "{\"kind\":\"Event\",\"apiVersion\":\"v1\"," METADATA ",\"involvedObject\":" POD ","
	      "\"reason\":\"BackOff\",\"message\":\"first\",\"type\":\"Warning\"," EVENT_TIME "," SERIES_OF_2 ","
	      "\"action\":\"Restarting\",\"reportingComponent\":\"kubelet\","
	      "\"reportingInstance\":\"kubelet-node-1\"}");
	write_free(item);
}

/* A series that an earlier process began keeps its own event time. */
static void test_event_time_of_the_event_wins(void **state)
{
	evrec_fields event = sample();
	void *item;

	(void)state;
	event.event_time = T0 - 60 * EVREC_SECOND;
	item = make(&event, 2);
	assert_int_equal(write_fields(item, BODY_WHOLE).event_time, T0 - 60 * EVREC_SECOND);
	write_free(item);
}

/* The patch is the series, in either API; an API server is told no state. */
static void test_patch_in_the_new_style_is_the_series(void **state)
{
	evrec_fields event = sample();
	void *item = make(&event, 2);

	(void)state;
	check_patch(item, READER_SERVER, "{" SERIES_OF_2 "}");
	check_patch(item, READER_ANY,
	            "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:21.123456Z\","
	            "\"state\":\"Ongoing\"}}");
	write_free(item);
}

/* Whoever reads lines or calls gets the event in the new style too, with its state. */
static void test_event_of_a_write_has_the_series(void **state)
{
	evrec_fields event = sample();
	void *item = make(&event, 2);
	evrec_event view;
	const evrec_fields *fields = evrec_event_fields(&view);

	(void)state;
	write_view(item, BODY_WHOLE, &view);
	assert_int_equal(fields->series_count, 2);
	assert_str(fields->series_state, "Ongoing");
	assert_int_equal(fields->count, 0);
	write_free(item);
	item = make(&event, 1);
	write_view(item, BODY_WHOLE, &view);
	assert_int_equal(fields->event_time, T0 + 123456789);
	assert_int_equal(fields->count, 0);
	write_free(item);
}

static void check_copy(const void *item, enum body body, int32_t count, const char *note)
{
	const evrec_fields fields = write_fields(item, body);
	evrec_event view, *copy;
	char *json, *expected;

	write_view(item, body, &view);
	copy = evrec_event_copy(mem_alloc(evrec_event_size(&view)), &view);
	assert_int_equal(evrec_event_fields(copy)->count, count);
	assert_true(str_eq(evrec_event_fields(copy)->note, str_from(note)));
	view.fields = fields;
	json = evrec_event_json(copy, EVREC_CORE_V1, NULL);
	expected = evrec_event_json(&view, EVREC_CORE_V1, NULL);
	assert_string_equal(json, expected);
	evrec_free(json);
	evrec_free(expected);
	mem_free(copy);
}

/* A copy of a write's event is that of its packed bytes, as long as these have all strings. */
static void test_event_of_a_write_is_copied_with_what_has_changed(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 1);
	void *item;

	(void)state;
	event.resource_version = EVREC_STR("17");
	draft.new_style = false;
	item = write_new(&draft);
	check_copy(item, BODY_WHOLE, 1, "first");
	check_copy(item, BODY_CREATE, 1, "first"); /* which has no resource version */
	draft.count = 7;
	assert_true(write_ops.fold(item, &draft));
	check_copy(item, BODY_WHOLE, 7, "first");
	draft.note = EVREC_STR("another");
	draft.note_changes = true;
	assert_true(write_ops.fold(item, &draft));
	check_copy(item, BODY_WHOLE, 7, "another");
	write_free(item);
	item = make(&event, 3);
	check_copy(item, BODY_WHOLE, 0, "first");
	write_free(item);
}

/* An API server takes the old style in core/v1 alone; everyone else gets the API that is asked for. */
static void test_old_style_goes_to_a_server_in_core_v1(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 1);
	struct encoded encoded;
	void *item, *new_style = make(&event, 1);

	(void)state;
	draft.new_style = false;
	item = write_new(&draft);
	assert_true(write_encode(item, BODY_CREATE, EVREC_EVENTS_V1, READER_SERVER, &encoded));
	assert_int_equal(encoded.api, EVREC_CORE_V1);
	unit_check_contains(encoded.body, "\"apiVersion\":\"v1\"");
	unit_check_contains(encoded.body, "\"firstTimestamp\":\"2023-11-14T22:13:20Z\"");
	encoded_free(&encoded);
	assert_true(write_encode(item, BODY_WHOLE, EVREC_EVENTS_V1, READER_ANY, &encoded));
	assert_int_equal(encoded.api, EVREC_EVENTS_V1);
	unit_check_contains(encoded.body, "\"deprecatedCount\":1");
	encoded_free(&encoded);
	assert_true(write_encode(new_style, BODY_CREATE, EVREC_EVENTS_V1, READER_SERVER, &encoded));
	assert_int_equal(encoded.api, EVREC_EVENTS_V1);
	encoded_free(&encoded);
	write_free(new_style);
	write_free(item);
}

/* ---- what changes it ---- */

/* A series is finished if its last write's time came; a further occurrence shows that it is not. */
static void test_write_whose_time_came_says_finished(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 3);
	void *item = make(&event, 2);

	(void)state;
	write_ops.on_time(item); /* by a heartbeat */
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	draft.finishes = true;
	assert_true(write_ops.fold(item, &draft));
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	write_ops.on_time(item);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Finished");
	draft = draft_of(&event, 4);
	assert_true(write_ops.fold(item, &draft));
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	write_ops.on_time(item);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	write_free(item);
	draft.finishes = true;
	item = write_new(&draft);
	write_ops.on_time(item);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Finished");
	write_free(item);
}

/* The count is that of all processes. */
static void test_base_is_added_to_the_count(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 1);
	void *item, *copy;

	(void)state;
	draft.base = 5;
	item = write_new(&draft);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 6);
	draft = draft_of(&event, 2);
	assert_true(write_ops.fold(item, &draft));
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 7);
	write_ops.set_base(item, 10);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 12);
	draft.base = UINT32_MAX;
	assert_true(write_ops.fold(item, &draft));
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, INT32_MAX);
	copy = write_ops.copy(item);
	assert_int_equal(write_fields(copy, BODY_WHOLE).series_count, INT32_MAX);
	write_free(copy);
	write_free(item);
}

/* A series has the note of its last event, also if that is empty. */
static void test_last_note_is_kept(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 2);
	void *item = make(&event, 1), *copy;

	(void)state;
	draft.note = EVREC_STR("the second");
	draft.note_changes = true;
	assert_true(write_ops.fold(item, &draft));
	assert_str(write_fields(item, BODY_CREATE).note, "the second");
	draft.note = EVREC_STR("");
	assert_true(write_ops.fold(item, &draft));
	assert_int_equal(write_fields(item, BODY_CREATE).note.len, 0);
	copy = write_ops.copy(item);
	assert_non_null(copy);
	assert_int_equal(write_fields(copy, BODY_CREATE).note.len, 0);
	write_free(copy);
	write_free(item);
}

/* The follow-up's count replaces the count of its entry; the event stays the entry's. */
static void test_follow_up_is_merged(void **state)
{
	evrec_fields event = sample(), other = sample();
	struct write_draft draft = draft_of(&other, 4);
	void *item = make(&event, 2), *next;
	evrec_fields merged;

	(void)state;
	write_ops.set_base(item, 5);
	other.note = EVREC_STR("later");
	draft.finishes = true;
	next = write_new(&draft);
	assert_true(write_ops.merge(item, next));
	merged = write_fields(item, BODY_WHOLE);
	assert_int_equal(merged.series_count, 9);
	assert_int_equal(merged.series_last, event.first + 3 * EVREC_SECOND);
	assert_str(merged.note, "later");
	write_ops.on_time(item);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Finished");
	write_ops.set_base(next, 7);
	assert_true(write_ops.merge(item, next));
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 11);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	write_ops.on_time(next);
	assert_true(write_ops.merge(item, next));
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Finished");
	write_free(next);
	write_free(item);
}

static void test_copy_is_a_write_of_its_own(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 3);
	void *item, *copy;
	evrec_fields fields;

	(void)state;
	draft.finishes = true;
	draft.base = 4;
	item = write_new(&draft);
	write_ops.set_name(item, "renamed");
	copy = write_ops.copy(item);
	draft = draft_of(&event, 9);
	assert_true(write_ops.fold(item, &draft));
	write_free(item);
	write_ops.on_time(copy);
	fields = write_fields(copy, BODY_WHOLE);
	assert_str(fields.name, "renamed");
	assert_int_equal(fields.series_count, 7);
	assert_str(fields.series_state, "Finished");
	write_free(copy);
}

/* ---- the spool ---- */

static void *through_spool(void *item, bool *important)
{
	struct buf out = { 0 };
	void *again;

	assert_true(write_codec.serialize(item, &out));
	again = write_codec.parse(buf_str(&out), important);
	assert_non_null(again);
	buf_free(&out);
	write_free(item);
	return again;
}

static void check_same(const void *item, const char *body, const char *patch)
{
	check(item, BODY_WHOLE, EVREC_CORE_V1, READER_ANY, body);
	if (patch != NULL) {
		check_patch(item, READER_ANY, patch);
	}
}

/* Each write is read from a spool as it was, and counts on from there. */
static void test_spool_keeps_the_new_style(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 2);
	struct encoded before, patch;
	bool important;
	void *item;

	(void)state;
	for (int32_t count = 1; count <= 3; count++) {
		bool important_again = false;

		item = make(&event, count);
		write_ops.set_base(item, count == 3 ? 4 : 0);
		if (count == 2) {
			draft.finishes = true;
			assert_true(write_ops.fold(item, &draft));
			write_ops.on_time(item);
		}
		assert_true(write_encode(item, BODY_WHOLE, EVREC_CORE_V1, READER_ANY, &before));
		assert_true(write_encode(item, BODY_PATCH, EVREC_CORE_V1, READER_ANY, &patch));
		item = through_spool(item, &important_again);
		assert_true(important_again);
		check_same(item, before.body, count == 1 ? NULL : patch.body);
		encoded_free(&before);
		encoded_free(&patch);
		write_free(item);
	}
	item = through_spool(make(&event, 1), &important);
	draft = draft_of(&event, 2);
	assert_true(write_ops.fold(item, &draft));
	check_patch(item, READER_SERVER, "{" SERIES_OF_2 "}");
	write_free(item);
	item = through_spool(make(&event, 1), &important);
	write_ops.set_base(item, 1);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 2);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_last, T0 + 123456000);
	write_free(item);
}

/* An event with an event time and a count is not in the new style, nor is one without an event time. */
static void test_spool_keeps_the_old_style(void **state)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 3);
	bool important;
	void *item;

	(void)state;
	for (int i = 0; i < 2; i++) {
		event.event_time = i == 0 ? EVREC_UNSET : T0;
		draft.new_style = false;
		item = write_new(&draft);
		assert_true(write_ops.fold(item, &draft));
		item = through_spool(item, &important);
		check_patch(item, READER_SERVER,
		            "{\"count\":3,\"lastTimestamp\":\"2023-11-14T22:13:22Z\",\"message\":\"first\"}");
		write_free(item);
	}
}

/* ---- memory ---- */

static void scenario(void)
{
	evrec_fields event = sample();
	struct write_draft draft = draft_of(&event, 2);
	struct encoded encoded;
	struct buf out = { 0 };
	void *item, *copy;
	bool important;

	alloc_failure_arm();
	draft.note = EVREC_STR("a longer note");
	draft.note_changes = true;
	item = write_new(&draft);
	alloc_failure_check(item != NULL);
	if (item != NULL) {
		alloc_failure_check(write_ops.fold(item, &draft));
		copy = write_ops.copy(item);
		alloc_failure_check(copy != NULL);
		write_free(copy);
		alloc_failure_check(write_encode(item, BODY_PATCH, EVREC_EVENTS_V1, READER_SERVER, &encoded));
		encoded_free(&encoded);
		alloc_failure_check(write_codec.serialize(item, &out));
		write_free(item);
	}
	item = write_codec.parse(buf_str(&out), &important);
	alloc_failure_check(item != NULL || out.failed || out.len == 0);
	write_free(item);
	buf_free(&out);
	alloc_failure_disarm();
}

static void test_every_allocation_may_fail(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_write_in_the_new_style_has_an_event_time_alone),
		cmocka_unit_test(test_create_of_a_series_has_the_series),
		cmocka_unit_test(test_event_time_of_the_event_wins),
		cmocka_unit_test(test_patch_in_the_new_style_is_the_series),
		cmocka_unit_test(test_event_of_a_write_has_the_series),
		cmocka_unit_test(test_event_of_a_write_is_copied_with_what_has_changed),
		cmocka_unit_test(test_old_style_goes_to_a_server_in_core_v1),
		cmocka_unit_test(test_write_whose_time_came_says_finished),
		cmocka_unit_test(test_base_is_added_to_the_count),
		cmocka_unit_test(test_last_note_is_kept),
		cmocka_unit_test(test_follow_up_is_merged),
		cmocka_unit_test(test_copy_is_a_write_of_its_own),
		cmocka_unit_test(test_spool_keeps_the_new_style),
		cmocka_unit_test(test_spool_keeps_the_old_style),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	alloc_failure_hook_jansson();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
