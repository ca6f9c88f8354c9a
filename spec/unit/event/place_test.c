/* Functions that write to the caller's memory: they make an event there, a copy of one, or a patch. */
#include "event_fields.h"

#include "event/event.h"

static evrec_fields minimal(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	return f;
}

static evrec_fields sample(void)
{
	evrec_fields f = minimal();

	f.last = T0 + 60 * EVREC_SECOND;
	f.count = 3;
	f.note = EVREC_STR("tab\there, \"quotes\", \xE2\x82\xAC");
	return f;
}

/* ---- events ---- */

/* Checks an event in exactly the bytes that it asks for: a sanitizer sees one more. */
static void check_placed(const evrec_fields *fields)
{
	const size_t room = evrec_event_room(fields);
	void *memory = malloc(room);
	evrec_event *event = evrec_event_place(memory, fields);

	assert_ptr_equal(event, memory);
	assert_int_equal(evrec_event_size(event), room);
	event_fields_check_same(evrec_event_fields(event), fields);
	event_fields_check_within(evrec_event_fields(event), memory, room);
	free(memory);
}

static void test_event_lies_in_memory_of_the_caller(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	check_placed(&f);
	f = sample();
	check_placed(&f);
	f = event_fields_full();
	check_placed(&f);
}

/* An allocator whose every call is counted. */
static void *count_call(void *ctx, void *block, size_t size)
{
	(void)block;
	(void)size;
	++*(unsigned *)ctx;
	return NULL;
}

static void test_placed_event_is_not_counted(void **state)
{
	const evrec_fields f = event_fields_full();
	const size_t room = evrec_event_room(&f);
	char *memory = malloc(room), *before = malloc(room);
	unsigned calls = 0;
	evrec_event *event;

	(void)state;
	evrec_set_allocator(count_call, &calls);
	event = evrec_event_place(memory, &f);
	memcpy(before, memory, room);
	evrec_event_release(event);
	evrec_event_release(event);
	assert_ptr_equal(evrec_event_retain(event), event);
	evrec_set_allocator(NULL, NULL);
	assert_int_equal(calls, 0);
	assert_memory_equal(memory, before, room);
	free(memory);
	free(before);
}

/* Checks a copy in exactly the bytes that it asks for, after the event is gone. */
static void check_copied(evrec_event *event, size_t size, const evrec_fields *fields)
{
	void *memory = malloc(evrec_event_size(event)), *second = malloc(evrec_event_size(event));
	evrec_event *copy = evrec_event_copy(memory, event);

	assert_ptr_equal(copy, memory);
	assert_int_equal(evrec_event_size(copy), evrec_event_size(event));
	memset(event, 'x', size);
	event_fields_check_same(evrec_event_fields(copy), fields);
	event_fields_check_within(evrec_event_fields(copy), memory, evrec_event_size(copy));
	evrec_event_release(copy); /* it is not counted either */
	copy = evrec_event_copy(second, copy);
	memset(memory, 'x', evrec_event_size(copy));
	event_fields_check_same(evrec_event_fields(copy), fields);
	free(memory);
	free(second);
}

static void check_copy_of_placed(const evrec_fields *fields)
{
	const size_t room = evrec_event_room(fields);
	void *memory = malloc(room);

	check_copied(evrec_event_place(memory, fields), room, fields);
	free(memory);
}

static void test_copy_equals_its_event(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	check_copy_of_placed(&f);
	f = event_fields_full();
	check_copy_of_placed(&f);
}

/* The copy of a counted event is not counted. */
static void test_copy_outlives_a_counted_event(void **state)
{
	const evrec_fields f = event_fields_full();
	evrec_event *event = evrec_event_new(&f), *copy;
	void *memory = malloc(evrec_event_size(event));

	(void)state;
	copy = evrec_event_copy(memory, event);
	evrec_event_release(event);
	evrec_event_release(copy);
	event_fields_check_same(evrec_event_fields(copy), &f);
	free(memory);
}

/* A correlator's event has numbers of its own, or strings in several places. */
static void test_copy_has_what_was_changed(void **state)
{
	evrec_fields f = event_fields_full();
	const size_t room = evrec_event_room(&f);
	void *memory = malloc(room);
	evrec_event *event = evrec_event_place(memory, &f), loose = { .packed = NULL };

	(void)state;
	f.first = event->fields.first = T0 + 11;
	f.last = event->fields.last = T0 + 12;
	f.event_time = event->fields.event_time = T0 + 13;
	f.series_last = event->fields.series_last = T0 + 14;
	f.count = event->fields.count = 15;
	f.series_count = event->fields.series_count = 16;
	check_copied(event, room, &f);
	loose.fields = f;
	check_copied(&loose, sizeof(loose), &f);
	free(memory);
}

static void test_no_memory_is_large_enough_for_a_huge_event(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	f.note = (evrec_str){ "", (size_t)UINT32_MAX + 1 }; /* no byte of it is read */
	assert_true(evrec_event_room(&f) == SIZE_MAX);
}

/* ---- patches ---- */

#define WRITTEN_MAX 512

static void check_written_patch(const evrec_fields *fields)
{
	char to[WRITTEN_MAX], *patch;
	size_t len;

	patch = evrec_fields_patch(fields, &len);
	assert_true(len < sizeof(to));
	for (size_t size = 0; size < sizeof(to); size++) {
		memset(to, '#', sizeof(to));
		assert_int_equal(evrec_fields_write_patch(fields, to, size), size < len ? 0 : len);
		assert_true(size < len || memcmp(to, patch, len) == 0);
		for (size_t i = size; i < sizeof(to); i++) {
			assert_int_equal(to[i], '#');
		}
	}
	evrec_free(patch);
}

/* In memory of every size: nothing if it is too little, and the patch if it is just enough. */
static void test_patch_is_written_to_memory_of_the_caller(void **state)
{
	evrec_fields f = sample();

	(void)state;
	check_written_patch(&f);
	f.note = EVREC_STR("no escape");
	check_written_patch(&f);
	f.note = EVREC_STR("no UTF-8: \xFF");
	check_written_patch(&f);
	f.note = (evrec_str){ NULL, 0 };
	check_written_patch(&f);
	f.last = EVREC_UNSET;
	f.count = INT32_MAX;
	check_written_patch(&f);
	f.count = 0;
	f.series_count = 2;
	f.series_last = T0;
	check_written_patch(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_lies_in_memory_of_the_caller),
		cmocka_unit_test(test_placed_event_is_not_counted),
		cmocka_unit_test(test_copy_equals_its_event),
		cmocka_unit_test(test_copy_outlives_a_counted_event),
		cmocka_unit_test(test_copy_has_what_was_changed),
		cmocka_unit_test(test_no_memory_is_large_enough_for_a_huge_event),
		cmocka_unit_test(test_patch_is_written_to_memory_of_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
