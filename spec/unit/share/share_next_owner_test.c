/* An owner that ends or is killed: a worker takes over, nothing is lost, and the state goes to one worker. */
#include "share_world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_killed_owner_is_replaced_and_nothing_is_lost(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker, *other;
	char name[256];

	share_world_start_two(w, &owner, &worker);
	other = share_world_start(w, 2);
	share_world_step(w, 4);
	owner->settles = false;
	(void)share_process_add(worker, "a");
	(void)share_process_add(other, "a");
	share_world_step(w, 2);
	assert_int_equal(owner->occurrences, 2);
	/* The owner has read the other worker first. */
	(void)snprintf(name, sizeof(name), "%s", owner->recorded[1].name);
	share_settled(owner->share, owner->recorded[1].source, owner->recorded[1].node, 0, FRAME_FORWARDED, 1);
	share_process_stop(owner);
	share_world_step(w, 4);
	/* The first worker that notices is the next owner, and the last owner may have written what it had sent. */
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	assert_int_equal(share_role(other->share), SHARE_WORKER);
	assert_int_equal(worker->occurrences, 2);
	assert_true(worker->recorded[0].again && worker->recorded[1].again);
	assert_string_equal(worker->recorded[0].name, name);
	assert_true(share_is_settled(other->share));
	assert_int_equal(share_process_counts(other).forwarded, 1);
}

/* An owner in a process of its own, which writes a byte once it is the owner, and once it has served a worker. */
static void own_with_child(struct share_world *w, const int held[2], int told)
{
	struct share_process *p = share_world_start(w, 0);
	char byte;

	share_step(p->share, unit_mono(), 0);
	(void)!write(told, "", 1);
	while (p->occurrences == 0) {
		share_step(p->share, unit_mono(), EVREC_SECOND);
	}
	/* Its child never uses the share, and lives on. */
	if (fork() == 0) {
		(void)close(held[1]);
		(void)!write(told, "", 1);
		(void)!read(held[0], &byte, 1);
		_exit(0);
	}
	for (;;) {
		(void)pause();
	}
}

static void test_child_of_a_killed_owner_does_not_hold_its_connections(void **state)
{
	struct share_world *w = *state;
	const int64_t deadline = unit_mono() + SOON;
	struct share_process *worker;
	int held[2], told[2];
	char byte;
	pid_t owner;

	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(told), 0);
	owner = fork();
	if (owner == 0) {
		own_with_child(w, held, told[1]);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	worker = share_world_start(w, 1);
	(void)share_process_add(worker, "a");
	while (!share_is_settled(worker->share) && unit_mono() < deadline) {
		share_step(worker->share, unit_mono(), EVREC_SECOND / 100);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	while (share_role(worker->share) != SHARE_OWNER && unit_mono() < deadline) {
		share_step(worker->share, unit_mono(), EVREC_SECOND / 100);
	}
	for (size_t i = 0; i < 2; i++) {
		(void)close(held[i]);
		(void)close(told[i]);
	}
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
}

static void test_owner_that_ends_hands_its_state_to_one_worker(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *first, *second;
	int heirs;

	share_world_start_two(w, &owner, &first);
	second = share_world_start(w, 2);
	share_world_step(w, 4);
	owner->state = "the state";
	owner->settles = false;
	(void)share_process_add(first, "a");
	share_world_step(w, 2);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	share_end(owner->share, SOON);
	share_process_stop(owner);
	share_world_step(w, 2);
	assert_true(share_is_settled(first->share));
	heirs = (share_role(first->share) == SHARE_OWNER) + (share_role(second->share) == SHARE_OWNER);
	assert_int_equal(heirs, 1);
	first = share_role(first->share) == SHARE_OWNER ? first : second;
	second = first == second ? &w->processes[1] : second;
	assert_string_equal(first->loaded, "the state");
	/* The other one waits a moment, so as not to be the next owner itself, and then connects. */
	assert_int_equal(share_role(second->share), SHARE_UNKNOWN);
	w->now += EVREC_SECOND;
	share_world_step(w, 4);
	assert_int_equal(share_role(second->share), SHARE_WORKER);
	assert_string_equal(second->loaded, "");
}

/* The second owner ends in order, but has not read what the first one, which was killed, may have counted. */
static void test_owner_that_ends_does_not_make_sure_what_it_has_not_read(void **state)
{
	struct share_world *w = *state;
	struct share_process *killed, *second, *worker = &w->processes[2];

	share_world_start_two(w, &killed, &second);
	(void)share_world_start(w, 2);
	share_world_step(w, 4);
	killed->settles = false;
	(void)share_process_add(worker, "a");
	share_world_step(w, 2);
	assert_int_equal(killed->recorded_len, 1);
	share_process_stop(killed);
	share_step(second->share, w->now, 0);
	share_step(second->share, w->now, 0);
	assert_int_equal(share_role(second->share), SHARE_OWNER);
	for (unsigned i = 0; i < 2; i++) {
		share_step(worker->share, w->now, 0);
	}
	share_step(second->share, w->now, 0);
	share_step(worker->share, w->now, 0);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	assert_int_equal(second->recorded_len, 0);
	share_end(second->share, SOON);
	share_process_stop(second);
	share_world_step(w, 4);
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	assert_int_equal(worker->recorded_len, 1);
	assert_true(worker->recorded[0].again && worker->recorded[0].unsure);
}

/* Else it would count on from there when that one ends. */
static void test_state_of_an_owner_before_the_last_one_is_forgotten(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *heir, *other;

	share_world_start_two(w, &owner, &heir);
	owner->state = "old";
	share_end(owner->share, SOON);
	share_process_stop(owner);
	other = share_world_start(w, 2);
	share_step(other->share, w->now, 0);
	share_world_step(w, 4);
	assert_int_equal(share_role(other->share), SHARE_OWNER);
	assert_int_equal(share_role(heir->share), SHARE_WORKER);
	share_process_stop(other);
	share_world_step(w, 3);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "");
}

static void test_state_that_is_too_large_is_told(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *heir;
	char *large = calloc(1, FRAME_STATE_MAX + 2);

	assert_non_null(large);
	memset(large, 'x', FRAME_STATE_MAX + 1);
	share_world_start_two(w, &owner, &heir);
	owner->state = large;
	share_end(owner->share, SOON);
	assert_int_equal(owner->errors, 1);
	assert_string_equal(owner->error_name, "share");
	unit_check_contains(owner->error, "the next owner gets no counts of sink 1: they take more than 64 MiB");
	share_process_stop(owner);
	share_world_step(w, 4);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "");
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_WORLD_TEST(test_killed_owner_is_replaced_and_nothing_is_lost),
		SHARE_WORLD_TEST(test_child_of_a_killed_owner_does_not_hold_its_connections),
		SHARE_WORLD_TEST(test_owner_that_ends_hands_its_state_to_one_worker),
		SHARE_WORLD_TEST(test_owner_that_ends_does_not_make_sure_what_it_has_not_read),
		SHARE_WORLD_TEST(test_state_of_an_owner_before_the_last_one_is_forgotten),
		SHARE_WORLD_TEST(test_state_that_is_too_large_is_told),
	};

	return cmocka_run_group_tests_name("share: next owner", tests, NULL, NULL);
}
