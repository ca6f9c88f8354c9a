/* Functions that write to the caller's memory: they pack an event there, or write a patch. */
#include "event_fields.h"

#include "event/event.h"
#include "event/packed.h"

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

static void check_read(const evrec_packed *packed, size_t size, const evrec_fields *fields)
{
	evrec_fields read;

	evrec_packed_read(packed, &read);
	event_fields_check_same(&read, fields);
	event_fields_check_within(&read, packed, size);
}

/* Checks an event in exactly the bytes that it asks for: a sanitizer sees one more. */
static void check_packed(const evrec_fields *fields)
{
	const size_t room = evrec_packed_room(fields);
	void *memory = malloc(room);

	assert_ptr_equal(evrec_packed_make(memory, fields), memory);
	check_read(memory, room, fields);
	free(memory);
}

static void test_event_lies_in_memory_of_the_caller(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	check_packed(&f);
	f = sample();
	check_packed(&f);
	f = event_fields_full();
	check_packed(&f);
}

/* A sink's event: it is not counted, and has memory that ends before the copy does. */
static evrec_event *view_of(const evrec_fields *fields)
{
	evrec_event *view = malloc(sizeof(*view) + evrec_packed_room(fields));

	*view = (evrec_event){ .unread = true, .packed = evrec_packed_make(view + 1, fields) };
	packed_get_numbers(view->packed, &view->fields);
	return view;
}

/* Checks a copy in exactly the bytes that it asks for, after the event, of `size` bytes, is gone. */
static void check_copied(evrec_event *event, size_t size, const evrec_fields *fields)
{
	const size_t room = evrec_packed_size(event);
	void *memory = malloc(room);

	assert_ptr_equal(evrec_packed_copy(memory, event), memory);
	memset(event, 'x', size);
	check_read(memory, room, fields);
	free(memory);
}

static void check_copy_of_view(const evrec_fields *fields)
{
	evrec_event *view = view_of(fields);

	check_copied(view, sizeof(*view) + evrec_packed_room(fields), fields);
	free(view);
}

static void test_copy_equals_its_event(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	check_copy_of_view(&f);
	f = event_fields_full();
	check_copy_of_view(&f);
}

static void test_copy_outlives_a_counted_event(void **state)
{
	const evrec_fields f = event_fields_full();
	evrec_event *event = evrec_event_new(&f);
	const size_t room = evrec_packed_size(event);
	void *memory = malloc(room);

	(void)state;
	assert_int_equal(room, evrec_packed_room(&f));
	(void)evrec_packed_copy(memory, event);
	evrec_event_release(event);
	check_read(memory, room, &f);
	free(memory);
}

/* An event of a correlator or of a sink has numbers of its own, or strings in several places. */
static void test_copy_has_what_was_changed(void **state)
{
	evrec_fields f = event_fields_full();
	evrec_event *event = view_of(&f), loose = { .packed = NULL };
	const size_t room = sizeof(*event) + evrec_packed_room(&f);

	(void)state;
	f.first = event->fields.first = T0 + 11;
	f.last = event->fields.last = T0 + 12;
	f.event_time = event->fields.event_time = T0 + 13;
	f.series_last = event->fields.series_last = T0 + 14;
	f.count = event->fields.count = 15;
	f.series_count = event->fields.series_count = 16;
	check_copied(event, room, &f);
	free(event);
	loose.fields = f;
	check_copied(&loose, sizeof(loose), &f);
}

/* An allocator whose every call is counted. */
static void *count_call(void *ctx, void *block, size_t size)
{
	(void)block;
	(void)size;
	++*(unsigned *)ctx;
	return NULL;
}

static void test_event_of_a_sink_is_not_counted(void **state)
{
	const evrec_fields f = event_fields_full();
	evrec_event *event = view_of(&f);
	unsigned calls = 0;

	(void)state;
	evrec_set_allocator(count_call, &calls);
	evrec_event_release(event);
	evrec_event_release(event);
	assert_ptr_equal(evrec_event_retain(event), event);
	event_fields_check_same(evrec_event_fields(event), &f);
	evrec_set_allocator(NULL, NULL);
	assert_int_equal(calls, 0);
	assert_int_equal(event->refs, 0);
	free(event);
}

static void test_no_memory_is_large_enough_for_a_huge_event(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	f.note = (evrec_str){ "", (size_t)UINT32_MAX + 1 }; /* no byte of it is read */
	assert_true(evrec_packed_room(&f) == SIZE_MAX);
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
		cmocka_unit_test(test_event_of_a_sink_is_not_counted),
		cmocka_unit_test(test_copy_equals_its_event),
		cmocka_unit_test(test_copy_outlives_a_counted_event),
		cmocka_unit_test(test_copy_has_what_was_changed),
		cmocka_unit_test(test_no_memory_is_large_enough_for_a_huge_event),
		cmocka_unit_test(test_patch_is_written_to_memory_of_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
