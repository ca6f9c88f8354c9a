/* Workers with other options than their owner: they are refused by name; and processes that must not own. */
#include "share_world.h"

/* An owner, and a worker that has an event, and whose options differ. */
static void start_refused(struct share_world *w, struct share_process **owner, struct share_process **worker)
{
	const struct share_options options = share_world_options(w);

	*owner = share_world_start(w, 0);
	share_world_step(w, 1);
	*worker = share_world_start_as(w, 1, &options, share_world_options_b);
	(void)share_process_add(*worker, "a");
}

static void test_worker_with_other_options_is_refused_by_name(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 0);
	assert_int_equal(worker->errors, 1);
	assert_string_equal(worker->error_name, "share_refused");
	assert_string_equal(worker->error, "the owner refuses this process: option 'qps' differs");
	/* It is told once, and tries again. */
	w->now += 10 * EVREC_SECOND;
	share_world_step(w, 6);
	assert_int_equal(worker->errors, 1);
	assert_true(share_set_options(worker->share, share_world_options_a, 1, 1));
	w->now += 10 * EVREC_SECOND;
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_true(share_is_settled(worker->share));
}

/* A server reads other options: its former processes have one owner, and the next ones another. */
static void test_refused_worker_takes_over_once_its_owner_is_gone(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_world_step(w, 6);
	share_end(owner->share, 0);
	share_process_stop(owner);
	w->now += EVREC_SECOND;
	share_world_step(w, 2);
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	assert_false(worker->alone);
	assert_int_equal(worker->occurrences, 1);
}

static void test_refused_worker_that_ends_records_itself(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_leave(worker->share);
	share_world_step(w, 6);
	assert_true(worker->alone);
	assert_true(share_is_settled(worker->share));
	assert_int_equal(share_process_add(worker, "b"), SHARE_OWN);
	assert_int_equal(worker->occurrences, 1);
	share_end(worker->share, 0);
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 0);
	/* The owner is still there for the others. */
	(void)share_process_add(share_world_start(w, 2), "c");
	w->now += EVREC_SECOND;
	share_world_step(w, 6);
	assert_int_equal(owner->occurrences, 1);
}

/* Its end comes before it has read that. */
static void test_worker_that_ends_is_refused(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_step(worker->share, w->now, 0);
	share_step(owner->share, w->now, 0);
	share_end(worker->share, 0);
	assert_string_equal(worker->error_name, "share_refused");
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 1);
}

static void test_options_that_change_are_compared_again(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;

	share_world_start_two(w, &owner, &worker);
	assert_true(share_set_options(owner->share, share_world_options_b, 1, 1));
	share_world_step(w, 6);
	unit_check_contains(worker->error, "option 'qps' differs");
}

static void test_process_that_must_not_own_waits_for_an_owner(void **state)
{
	struct share_world *w = *state;
	struct share_options options = share_world_options(w);
	struct share_process *client, *owner;

	options.client_only = true;
	client = share_world_start_as(w, 0, &options, share_world_options_a);
	(void)share_process_add(client, "a");
	share_world_step(w, 3);
	assert_int_equal(share_role(client->share), SHARE_UNKNOWN);
	owner = share_world_start(w, 1);
	share_world_step(w, 1);
	w->now += EVREC_SECOND;
	share_world_step(w, 4);
	assert_int_equal(owner->occurrences, 1);
	assert_true(share_is_settled(client->share));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_WORLD_TEST(test_worker_with_other_options_is_refused_by_name),
		SHARE_WORLD_TEST(test_refused_worker_takes_over_once_its_owner_is_gone),
		SHARE_WORLD_TEST(test_refused_worker_that_ends_records_itself),
		SHARE_WORLD_TEST(test_worker_that_ends_is_refused),
		SHARE_WORLD_TEST(test_options_that_change_are_compared_again),
		SHARE_WORLD_TEST(test_process_that_must_not_own_waits_for_an_owner),
	};

	return cmocka_run_group_tests_name("share: refused", tests, NULL, NULL);
}
