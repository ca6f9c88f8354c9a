/* A write that changes: by later occurrences, its time and its answer; and one that a spool has kept. */
#include "write_fixture.h"

/* ---- what changes it ---- */

/* A series is finished if its last write's time came; a further occurrence shows that it is not. */
static void test_write_whose_time_came_says_finished(void **state)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 3);
	void *item = write_fixture_make(&event, 2);

	(void)state;
	write_ops.on_time(item); /* by a heartbeat */
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	draft.finishes = true;
	assert_true(write_ops.fold(item, &draft));
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Ongoing");
	write_ops.on_time(item);
	assert_str(write_fields(item, BODY_WHOLE).series_state, "Finished");
	draft = write_fixture_draft(&event, 4);
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
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 1);
	void *item, *copy;

	(void)state;
	draft.base = 5;
	item = write_new(&draft);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 6);
	draft = write_fixture_draft(&event, 2);
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
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 2);
	void *item = write_fixture_make(&event, 1), *copy;

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
	evrec_fields event = write_fixture_event(), other = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&other, 4);
	void *item = write_fixture_make(&event, 2), *next;
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
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 3);
	void *item, *copy;
	evrec_fields fields;

	(void)state;
	draft.finishes = true;
	draft.base = 4;
	item = write_new(&draft);
	write_ops.set_name(item, "renamed");
	copy = write_ops.copy(item);
	draft = write_fixture_draft(&event, 9);
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
	write_fixture_check(item, BODY_WHOLE, EVREC_CORE_V1, READER_ANY, body);
	if (patch != NULL) {
		write_fixture_check_patch(item, READER_ANY, patch);
	}
}

/* Each write is read from a spool as it was, and counts on from there. */
static void test_spool_keeps_the_new_style(void **state)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 2);
	struct encoded before, patch;
	bool important;
	void *item;

	(void)state;
	for (int32_t count = 1; count <= 3; count++) {
		bool important_again = false;

		item = write_fixture_make(&event, count);
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
	item = through_spool(write_fixture_make(&event, 1), &important);
	draft = write_fixture_draft(&event, 2);
	assert_true(write_ops.fold(item, &draft));
	write_fixture_check_patch(item, READER_SERVER, "{" WRITE_SERIES_OF_2 "}");
	write_free(item);
	item = through_spool(write_fixture_make(&event, 1), &important);
	write_ops.set_base(item, 1);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_count, 2);
	assert_int_equal(write_fields(item, BODY_WHOLE).series_last, T0 + 123456000);
	write_free(item);
}

/* An event with an event time and a count is not in the new style, nor is one without an event time. */
static void test_spool_keeps_the_old_style(void **state)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 3);
	bool important;
	void *item;

	(void)state;
	for (int i = 0; i < 2; i++) {
		event.event_time = i == 0 ? EVREC_UNSET : T0;
		draft.new_style = false;
		item = write_new(&draft);
		assert_true(write_ops.fold(item, &draft));
		item = through_spool(item, &important);
		write_fixture_check_patch(
			item, READER_SERVER,
			"{\"count\":3,\"lastTimestamp\":\"2023-11-14T22:13:22Z\",\"message\":\"first\"}");
		write_free(item);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_whose_time_came_says_finished),
		cmocka_unit_test(test_base_is_added_to_the_count),
		cmocka_unit_test(test_last_note_is_kept),
		cmocka_unit_test(test_follow_up_is_merged),
		cmocka_unit_test(test_copy_is_a_write_of_its_own),
		cmocka_unit_test(test_spool_keeps_the_new_style),
		cmocka_unit_test(test_spool_keeps_the_old_style),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
