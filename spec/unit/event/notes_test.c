/* The queue of notes: their order, what a full queue loses, and threads. */
#include "note_fixture.h"
#include "unit.h"

#include <pthread.h>

static void test_notes_come_in_their_order_until_they_are_written(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	const struct note first = note_of_occurrence("a.1", T0),
			  second = note_of_suppression("web-0", "Failed", T0 + 1, 3);
	struct note note;

	(void)state;
	assert_false(notes_wait(notes));
	assert_false(notes_next(notes, &note));
	assert_true(notes_add(notes, &first));
	assert_false(notes_add(notes, &second));
	for (int tries = 0; tries < 2; tries++) {
		assert_true(notes_next(notes, &note));
		assert_false(note.suppressed);
		assert_int_equal(note.time, T0);
		assert_true(str_eq(note.texts[NOTE_NAME], EVREC_STR("a.1")));
		assert_true(notes_next(notes, &note));
		assert_true(note.suppressed);
		assert_int_equal(note.count, 3);
		assert_true(str_eq(note.texts[NOTE_MESSAGE], EVREC_STR("a \"message\"")));
		assert_int_equal(note.texts[NOTE_CAUSE].len, 0);
		assert_false(notes_next(notes, &note));
		/* The write failed once. */
		if (tries == 0) {
			notes_rewind(notes);
		}
	}
	assert_true(notes_wait(notes));
	notes_written(notes);
	assert_false(notes_wait(notes));
	assert_true(notes_add(notes, &first));
	notes_free(notes);
}

static void test_a_full_queue_counts_what_it_loses(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	uint64_t added = 0, found = 0, lost = 0;
	struct note note;

	(void)state;
	for (; added < 50000; added++) {
		note = note_of_suppression("web-0", "Failed", T0 + (int64_t)added, 1);
		(void)notes_add(notes, &note);
	}
	/* The first ones are written while more come. */
	assert_true(notes_next(notes, &note));
	assert_int_equal(note.time, T0);
	found++;
	for (; added < 60000; added++) {
		const struct note more = note_of_suppression("web-0", "Failed", T0 + (int64_t)added, 1);

		(void)notes_add(notes, &more);
	}
	do {
		while (notes_next(notes, &note)) {
			if (str_eq(note.texts[NOTE_STAGE], EVREC_STR("lost"))) {
				lost += note.count;
				assert_int_equal(note.texts[NOTE_NAME].len, 0);
			} else {
				found++;
			}
		}
		notes_written(notes);
	} while (notes_wait(notes));
	assert_true(lost > 10000);
	assert_int_equal(found + lost, added);
	assert_int_equal(notes_lost(notes), lost);
	notes_free(notes);
}

/* Adds notes of one size. Returns how many find room. */
static uint64_t fill(struct notes *notes)
{
	const struct note note = note_of_suppression("web-0", "Failed", T0, 1);
	const uint64_t before = notes_lost(notes);
	uint64_t added = 0;

	for (; notes_lost(notes) == before; added++) {
		(void)notes_add(notes, &note);
	}
	return added - 1;
}

static void test_the_bound_holds_for_both_buffers(void **state)
{
	struct notes *small = notes_new(true, true, NOTES_MIN), *large = notes_new(true, true, 3 * NOTES_MIN);
	const uint64_t room = fill(small);
	struct note note;

	(void)state;
	assert_true(room > 1000 && room < NOTES_MIN / sizeof(note.time));
	assert_in_range(fill(large), 3 * room, 3 * room + 3);
	/* What is being written takes room until it is written. */
	assert_true(notes_next(small, &note));
	assert_int_equal(fill(small), 0);
	while (notes_next(small, &note)) {
	}
	notes_written(small);
	assert_in_range(fill(small), room - 1, room);
	notes_free(small);
	notes_free(large);
}

static void test_lost_notes_are_counted_by_their_kind(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	const struct note occurrence = note_of_occurrence("a.1", T0 + 1),
			  suppression = note_of_suppression("web-0", "Failed", T0 + 2, 3);
	struct note note;

	(void)state;
	(void)fill(notes);
	for (int i = 0; i < 5; i++) {
		(void)notes_add(notes, &occurrence);
		(void)notes_add(notes, &suppression);
	}
	do {
		assert_true(notes_next(notes, &note));
	} while (!str_eq(note.texts[NOTE_STAGE], EVREC_STR("lost")));
	assert_true(str_eq(note.texts[NOTE_CAUSE], EVREC_STR("occurrence")));
	assert_true(note.suppressed && note.count == 5 && note.time == T0 + 1);
	assert_true(notes_next(notes, &note));
	assert_true(str_eq(note.texts[NOTE_STAGE], EVREC_STR("lost")));
	assert_true(str_eq(note.texts[NOTE_CAUSE], EVREC_STR("suppression")));
	assert_true(note.suppressed && note.count == 16 && note.time == T0 + 2);
	assert_false(notes_next(notes, &note));
	notes_free(notes);
}

static void test_people_are_told_once_of_each_time_that_the_queue_is_full(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	struct note note;

	(void)state;
	assert_false(notes_take_alarm(notes));
	for (int i = 0; i < 2; i++) {
		(void)fill(notes);
		assert_true(notes_take_alarm(notes));
		(void)fill(notes);
		assert_false(notes_take_alarm(notes));
		while (notes_wait(notes)) {
			while (notes_next(notes, &note)) {
			}
			notes_written(notes);
		}
	}
	notes_free(notes);
}

static void test_notes_that_are_given_up_are_lost_unless_they_are_written(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	const struct note one = note_of_occurrence("a.1", T0), three = note_of_suppression("web-0", "Failed", T0, 3);
	struct note note;

	(void)state;
	(void)notes_add(notes, &one);
	(void)notes_add(notes, &three);
	assert_true(notes_next(notes, &note));
	notes_written(notes);
	assert_true(notes_next(notes, &note));
	(void)notes_add(notes, &one);
	notes_give_up(notes);
	assert_int_equal(notes_lost(notes), 4);
	assert_true(notes_wait(notes));
	while (notes_wait(notes)) {
		assert_true(notes_next(notes, &note));
		notes_written(notes);
	}
	assert_int_equal(notes_lost(notes), 0);
	notes_free(notes);
}

/* ctx: size_t, the largest size that was asked for. */
static void *note_size(void *ctx, void *block, size_t size)
{
	size_t *largest = ctx;

	*largest = size > *largest ? size : *largest;
	if (size == 0) {
		free(block);
		return NULL;
	}
	return realloc(block, size);
}

static void test_a_recording_call_copies_no_more_if_many_notes_wait(void **state)
{
	struct notes *notes;
	size_t largest = 0;
	struct note note;

	(void)state;
	evrec_set_allocator(note_size, &largest);
	notes = notes_new(true, true, 8 * NOTES_MIN);
	(void)fill(notes);
	assert_in_range(largest, 1, 64 * 1024);
	while (notes_next(notes, &note)) {
	}
	notes_written(notes);
	notes_free(notes);
	evrec_set_allocator(NULL, NULL);
}

static void test_a_long_note_lies_between_short_ones(void **state)
{
	static char text[100 * 1024];
	const evrec_str key = { text, sizeof(text) };
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	const struct note one = note_of_occurrence("a.1", T0);
	struct note note = note_of_suppression("web-0", "Failed", T0, 1);

	(void)state;
	memset(text, 'k', sizeof(text));
	note.texts[NOTE_KEY] = key;
	(void)notes_add(notes, &one);
	(void)notes_add(notes, &note);
	(void)notes_add(notes, &one);
	assert_true(notes_next(notes, &note) && notes_next(notes, &note));
	assert_true(str_eq(note.texts[NOTE_KEY], key));
	notes_written(notes);
	for (int tries = 0; tries < 2; tries++) {
		assert_true(notes_next(notes, &note));
		assert_true(str_eq(note.texts[NOTE_NAME], EVREC_STR("a.1")));
		assert_false(notes_next(notes, &note));
		notes_rewind(notes);
	}
	notes_free(notes);
}

#define OF_A_THREAD 20000

static void *add_many(void *ctx)
{
	for (int i = 0; i < OF_A_THREAD; i++) {
		const struct note note = note_of_occurrence("a.1", T0 + i);

		(void)notes_add(ctx, &note);
	}
	return NULL;
}

static void test_threads_may_add_while_one_writes(void **state)
{
	struct notes *notes = notes_new(true, true, NOTES_MIN);
	pthread_t threads[2];
	uint64_t sum = 0;
	struct note note;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, notes), 0);
	}
	while (sum < 2 * OF_A_THREAD) {
		if (notes_next(notes, &note)) {
			sum += note.count;
		} else if (notes_wait(notes)) {
			notes_written(notes);
		}
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(sum, 2 * OF_A_THREAD);
	assert_false(notes_next(notes, &note));
	notes_free(notes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes_come_in_their_order_until_they_are_written),
		cmocka_unit_test(test_a_full_queue_counts_what_it_loses),
		cmocka_unit_test(test_the_bound_holds_for_both_buffers),
		cmocka_unit_test(test_lost_notes_are_counted_by_their_kind),
		cmocka_unit_test(test_people_are_told_once_of_each_time_that_the_queue_is_full),
		cmocka_unit_test(test_notes_that_are_given_up_are_lost_unless_they_are_written),
		cmocka_unit_test(test_a_recording_call_copies_no_more_if_many_notes_wait),
		cmocka_unit_test(test_a_long_note_lies_between_short_ones),
		cmocka_unit_test(test_threads_may_add_while_one_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
