/* Owners and workers, of one process here and stepped in turns: who writes, what is handed over, and what is counted. */
#include "share_world.h"

#include <unistd.h>

#include "alloc_failure.h"

static void test_nothing_is_bound_before_the_first_step(void **state)
{
	struct share_world *w = *state;
	struct share_process *second;

	(void)share_world_start(w, 0);
	second = share_world_start(w, 1);
	assert_int_equal(share_role(second->share), SHARE_UNKNOWN);
	share_step(second->share, w->now, 0);
	assert_int_equal(share_role(second->share), SHARE_OWNER);
	assert_int_equal(share_process_add(second, "a"), SHARE_OWN);
}

static void test_owner_records_what_was_noted_before(void **state)
{
	struct share_world *w = *state;
	struct share_process *p = share_world_start(w, 0);

	assert_int_equal(share_process_add(p, "a"), SHARE_KEPT);
	assert_int_equal(share_process_add(p, "a"), SHARE_KEPT);
	assert_false(share_is_settled(p->share));
	share_world_step(w, 1);
	assert_int_equal(p->recorded_len, 1);
	assert_int_equal(p->recorded[0].n, 2);
	assert_int_equal(p->recorded[0].source, 0);
	assert_false(p->recorded[0].again);
	assert_true(share_is_settled(p->share));
	assert_int_equal(share_process_counts(p).pending + share_process_counts(p).forwarded, 0);
}

/* It has the endpoint, and nobody else writes; but what it would write with is another process's for a moment. */
static void test_owner_keeps_events_until_it_can_write(void **state)
{
	struct share_world *w = *state;
	struct share_process *p = share_world_start(w, 0);

	p->begins_late = 2;
	(void)share_process_add(p, "a");
	share_world_step(w, 2);
	assert_int_equal(share_role(p->share), SHARE_UNKNOWN);
	assert_int_equal(share_process_add(p, "a"), SHARE_KEPT);
	share_world_step(w, 1);
	assert_int_equal(share_role(p->share), SHARE_OWNER);
	assert_int_equal(p->occurrences, 2);
	assert_int_equal(p->begins, 3);
}

static void test_worker_hands_over_and_is_told_the_end(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	share_world_start_two(w, &owner, &worker);
	owner->settles = false;
	assert_int_equal(share_process_add(worker, "a"), SHARE_KEPT);
	assert_int_equal(share_process_add(worker, "a"), SHARE_KEPT);
	assert_int_equal(share_process_add(worker, "b"), SHARE_KEPT);
	share_world_step(w, 2);
	assert_int_equal(owner->recorded_len, 2);
	assert_string_equal(owner->recorded[0].object, "a");
	assert_int_equal(owner->recorded[0].n, 2);
	assert_memory_equal(owner->recorded[0].name, "a.", 2);
	assert_int_equal(share_process_counts(worker).pending, 3);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_RATE_LIMITED, 1);
	share_settled(owner->share, owner->recorded[1].source, owner->recorded[1].node, 0, EVREC_CAUSE_FORBIDDEN, 1);
	share_world_step(w, 2);
	assert_true(share_is_settled(worker->share));
	assert_int_equal(share_process_counts(worker).forwarded, 1);
	assert_int_equal(share_process_counts(worker).rate_limited, 1);
	assert_int_equal(share_process_counts(worker).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	assert_int_equal(worker->lost[FRAME_RATE_LIMITED], 1);
	assert_int_equal(worker->lost[EVREC_CAUSE_FORBIDDEN], 1);
	assert_string_equal(worker->lost_object, "b");
	/* The owner knows the event, and gives it no name of the worker's any more. */
	(void)share_process_add(worker, "a");
	share_world_step(w, 2);
	assert_int_equal(owner->recorded_len, 3);
	assert_string_equal(owner->recorded[2].object, "a");
	assert_string_equal(owner->recorded[2].name, "");
}

/* A worker that is not refused hands its events over, also at its end. */
static void test_worker_that_ends_hands_over(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	share_world_start_two(w, &owner, &worker);
	(void)share_process_add(worker, "a");
	share_leave(worker->share);
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_int_equal(worker->occurrences, 0);
}

static void test_acknowledgements_wait_for_the_state_file(void **state)
{
	struct share_world *w = *state;
	struct share_options options = share_world_options(w);
	struct share_process *owner, *worker;

	options.holds_acks = true;
	owner = share_world_start_as(w, 0, &options, share_world_options_a);
	share_world_step(w, 1);
	worker = share_world_start(w, 1);
	(void)share_process_add(worker, "a");
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_false(share_is_settled(worker->share));
	share_mark(owner->share);
	(void)share_process_add(worker, "a");
	(void)share_process_add(worker, "b");
	share_world_step(w, 4);
	assert_int_equal(owner->occurrences, 3);
	share_release(owner->share);
	share_world_step(w, 4);
	/* The occurrences that were settled after the mark are not in the file. */
	assert_int_equal(share_process_counts(worker).forwarded, 1);
	share_mark(owner->share);
	share_release(owner->share);
	share_world_step(w, 4);
	assert_true(share_is_settled(worker->share));
}

/* An owner whose next step sends a batch of acknowledgements. */
static void start_two_with_a_batch(struct share_world *w, struct share_process **owner, struct share_process **worker)
{
	struct share_options options = share_world_options(w);

	options.holds_acks = true;
	*owner = share_world_start_as(w, 0, &options, share_world_options_a);
	share_world_step(w, 1);
	*worker = share_world_start(w, 1);
	(void)share_process_add(*worker, "a");
	share_world_step(w, 6);
	assert_int_equal((*owner)->occurrences, 1);
	(void)share_begin_batch((*owner)->share);
	assert_true(share_mark((*owner)->share));
	share_release((*owner)->share);
}

/* The owner forgets a batch that it has sent: the worker takes what has arrived before it connects anew. */
static void test_batch_that_arrives_as_the_options_change(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_two_with_a_batch(w, &owner, &worker);
	share_step(owner->share, w->now, 0);
	assert_true(share_has_sent_batch(owner->share, owner->recorded[0].source));
	assert_true(share_set_options(worker->share, share_world_options_a, 1, 1));
	share_step(worker->share, w->now, 0);
	assert_int_equal(share_process_counts(worker).forwarded, 1);
	(void)share_process_add(worker, "b");
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 2);
	assert_string_equal(owner->recorded[1].object, "b");
	assert_int_equal(worker->errors, 0);
}

/* The owner knows that the worker has not got this batch. */
static void test_batch_that_is_sent_after_the_options_changed(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_two_with_a_batch(w, &owner, &worker);
	assert_true(share_set_options(worker->share, share_world_options_a, 1, 1));
	share_step(worker->share, w->now, 0);
	share_step(owner->share, w->now, 0);
	assert_false(share_has_sent_batch(owner->share, owner->recorded[0].source));
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 2);
	assert_true(owner->recorded[1].again);
}

static void test_long_event_is_handed_over(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;
	char *note = malloc(250000);

	assert_non_null(note);
	memset(note, 'x', 250000);
	share_world_start_two(w, &owner, &worker);
	assert_int_equal(share_process_add_note(worker, "a", (evrec_str){ note, 250000 }), SHARE_KEPT);
	(void)share_process_add(worker, "b");
	share_world_step(w, 10);
	assert_int_equal(owner->recorded_len, 2);
	assert_string_equal(owner->recorded[0].object, "a");
	assert_string_equal(owner->recorded[1].object, "b");
	assert_true(share_is_settled(worker->share));
	free(note);
}

/* More than a socket holds, from a worker that is faster than its owner, and back. */
static void test_flood_of_different_events_is_handed_over(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;
	char object[32];

	share_world_start_two(w, &owner, &worker);
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(object, sizeof(object), "web-%u", i);
		assert_int_equal(share_process_add(worker, object), SHARE_KEPT);
		(void)share_process_add(worker, object);
	}
	assert_int_equal(share_process_add(worker, "one-more"), SHARE_DROPPED);
	for (unsigned i = 0; i < 1000 && !share_is_settled(worker->share); i++) {
		share_world_step(w, 1);
	}
	assert_int_equal(owner->occurrences, 2000);
	assert_int_equal(share_process_counts(worker).forwarded, 2000);
	assert_int_equal(share_process_counts(worker).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
}

static void test_flush_reaches_the_owner_behind_the_events(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	share_world_start_two(w, &owner, &worker);
	share_flush(worker->share);
	(void)share_process_add(worker, "a");
	share_world_step(w, 4);
	assert_int_equal(owner->flushes, 1);
	assert_int_equal(owner->occurrences, 1);
}

static void test_worker_that_ends_drops_what_is_left_and_tells(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	share_world_start_two(w, &owner, &worker);
	owner->settles = false;
	(void)share_process_add(worker, "a");
	share_world_step(w, 2);
	(void)share_process_add(worker, "a");
	share_end(worker->share, 0);
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 2);
	assert_int_equal(share_process_counts(worker).dropped[EVREC_CAUSE_CLOSED], 2);
	/* The end of an event of a worker that is gone concerns nobody. */
	share_world_step(w, 2);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	share_world_step(w, 1);
}

static void test_wake_ends_a_wait(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;
	int64_t before;

	share_world_start_two(w, &owner, &worker);
	share_wake(owner->share);
	before = unit_mono();
	share_step(owner->share, w->now, SOON);
	assert_true(unit_mono() - before < SOON);
	/* An event in an empty ledger wakes the worker, and a frame the owner. */
	(void)share_process_add(worker, "a");
	share_step(worker->share, w->now, SOON);
	share_step(owner->share, w->now, SOON);
	assert_int_equal(owner->occurrences, 1);
}

/* ---- memory ---- */

/* Whatever fails, the event is recorded or counted as dropped, in the end. */
static void scenario(void)
{
	static unsigned number;
	struct share_world w = { .now = T0 };
	struct share_options options;
	evrec_error err = { 0 };
	unsigned added = 0;
	struct share_process *p = w.processes;

	(void)snprintf(w.name, sizeof(w.name), "@evrec-share-memory-%ld-%u", (long)getpid(), number++);
	options = share_world_options(&w);
	alloc_failure_arm();
	for (size_t i = 0; i < 2; i++) {
		p[i].settles = true;
		p[i].share = share_new(&options, &share_world_ops, &p[i], &err);
		alloc_failure_check_error(p[i].share != NULL, &err);
		if (p[i].share != NULL && !share_set_options(p[i].share, share_world_options_a, 1, 1)) {
			alloc_failure_check(false);
			share_process_stop(&p[i]);
		}
	}
	if (p[0].share != NULL && p[1].share != NULL) {
		share_world_step(&w, 3);
		added = share_process_add(&p[1], "a") == SHARE_KEPT;
		added += share_process_add(&p[1], "a") == SHARE_KEPT;
		share_world_step(&w, 4);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	for (size_t i = 0; i < 4 && added != 0; i++) {
		w.now += 10 * EVREC_SECOND;
		share_world_step(&w, 6);
	}
	if (added != 0) {
		assert_true(share_is_settled(p[1].share));
		assert_true(p[0].occurrences + p[1].occurrences >= added);
	}
	share_free(p[0].share);
	share_free(p[1].share);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_WORLD_TEST(test_nothing_is_bound_before_the_first_step),
		SHARE_WORLD_TEST(test_owner_records_what_was_noted_before),
		SHARE_WORLD_TEST(test_owner_keeps_events_until_it_can_write),
		SHARE_WORLD_TEST(test_worker_hands_over_and_is_told_the_end),
		SHARE_WORLD_TEST(test_worker_that_ends_hands_over),
		SHARE_WORLD_TEST(test_acknowledgements_wait_for_the_state_file),
		SHARE_WORLD_TEST(test_batch_that_arrives_as_the_options_change),
		SHARE_WORLD_TEST(test_batch_that_is_sent_after_the_options_changed),
		SHARE_WORLD_TEST(test_long_event_is_handed_over),
		SHARE_WORLD_TEST(test_flood_of_different_events_is_handed_over),
		SHARE_WORLD_TEST(test_flush_reaches_the_owner_behind_the_events),
		SHARE_WORLD_TEST(test_worker_that_ends_drops_what_is_left_and_tells),
		SHARE_WORLD_TEST(test_wake_ends_a_wait),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
