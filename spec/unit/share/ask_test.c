/* A worker that asks its owner what it has suppressed. */
#include "ask_world.h"

#include "alloc_failure.h"

static void test_worker_is_answered_by_the_owner(void **state)
{
	struct buf none = { 0 };
	struct ask_world w;
	struct ask_process *owner = &w.processes[0], *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	ask_start_two(&w);
	assert_int_equal(share_take_answer(worker->share, &none), SHARE_ASKED);
	assert_true(ask_owner(worker, "web-0"));
	assert_int_equal(share_take_answer(worker->share, &none), SHARE_ASKED);
	/* One question at a time. */
	assert_false(ask_owner(worker, "web-1"));
	ask_step(&w, 2);
	assert_false(ask_owner(worker, "web-1"));
	assert_int_equal(owner->asked, 1);
	assert_string_equal(owner->object, "web-0");
	ask_check_answered(worker, 100);
	assert_true(share_ask(worker->share, NULL, &err));
	ask_step(&w, 2);
	assert_string_equal(owner->object, "*");
	ask_check_answered(worker, 100);
	ask_stop_two(&w);
}

/* The owner answers behind all that the worker recorded before. */
static void test_question_is_behind_the_events(void **state)
{
	struct ask_world w;
	struct ask_process *owner = &w.processes[0], *worker = &w.processes[1];
	char name[32];

	(void)state;
	ask_start_two(&w);
	assert_true(ask_owner(worker, "web-0"));
	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "web-%u", i);
		ask_add(worker, name);
	}
	ask_step(&w, 10);
	assert_int_equal(owner->asked, 1);
	assert_int_equal(owner->recorded, 200);
	assert_false(owner->late);
	ask_check_answered(worker, 100);
	ask_stop_two(&w);
}

static void test_long_answer_comes_in_parts(void **state)
{
	struct ask_world w;
	struct ask_process *owner = &w.processes[0], *worker = &w.processes[1];

	(void)state;
	ask_start_two(&w);
	owner->answer_len = 3000000;
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 2);
	/* Events of meanwhile are recorded behind it. */
	ask_add(worker, "late");
	ask_step(&w, 100);
	ask_check_answered(worker, 3000000);
	assert_int_equal(owner->recorded, 1);
	assert_true(share_is_settled(worker->share));
	ask_stop_two(&w);
}

static void test_answer_that_would_be_too_long_is_none(void **state)
{
	struct buf answer = { 0 };
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];

	(void)state;
	ask_start_two(&w);
	w.processes[0].answer_len = FRAME_ANSWER_MAX + 1;
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 3);
	assert_int_equal(share_take_answer(worker->share, &answer), SHARE_REFUSED);
	assert_int_equal(answer.len, 0);
	/* The connection goes on. */
	w.processes[0].answer_len = 50;
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 3);
	ask_check_answered(worker, 50);
	ask_stop_two(&w);
}

/* An object whose fields do not fit into a frame. */
static void test_object_that_is_too_long_is_refused(void **state)
{
	char *name = malloc(FRAME_MAX);
	struct ask_world w;
	evrec_error err = { 0 };

	(void)state;
	ask_start_two(&w);
	memset(name, 'x', FRAME_MAX - 1);
	name[FRAME_MAX - 1] = '\0';
	assert_false(share_ask(w.processes[1].share, ask_about(name), &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "object");
	assert_true(ask_owner(&w.processes[1], "web-0"));
	ask_stop_two(&w);
	free(name);
}

/* Who waits no longer does not get the answer that is under way; the next question is not answered by it. */
static void test_late_answer_is_ignored(void **state)
{
	struct ask_world w;
	struct ask_process *owner = &w.processes[0], *worker = &w.processes[1];

	(void)state;
	ask_start_two(&w);
	owner->answer_len = 1000000;
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 2); /* a part of it has come */
	share_forget_question(worker->share);
	owner->answer_len = 300000;
	assert_true(ask_owner(worker, "web-1"));
	ask_step(&w, 100);
	assert_int_equal(owner->asked, 2);
	assert_string_equal(owner->object, "web-1");
	ask_check_answered(worker, 300000);
	assert_int_equal(worker->errors, 0);
	ask_stop_two(&w);
}

/* The question goes to the next owner, which here is the worker: then its caller knows by itself. */
static void test_owner_that_goes_away_is_not_waited_for(void **state)
{
	struct buf answer = { 0 };
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	ask_start_two(&w);
	w.processes[0].answer_len = 1000000;
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 2);
	assert_int_equal(w.processes[0].asked, 1);
	ask_stop(&w.processes[0]);
	share_step(worker->share, w.now, 0);
	while (share_role(worker->share) != SHARE_OWNER) {
		w.now += EVREC_SECOND;
		share_step(worker->share, w.now, 0);
	}
	assert_int_equal(share_take_answer(worker->share, &answer), SHARE_ASKED);
	share_forget_question(worker->share);
	assert_true(ask_start(&w, 0, &err));
	ask_step(&w, 4);
	/* An owner has whom to ask as a worker again. */
	assert_true(ask_owner(&w.processes[0], "web-2"));
	ask_step(&w, 3);
	assert_string_equal(worker->object, "web-2");
	ask_check_answered(&w.processes[0], 100);
	ask_stop_two(&w);
}

/* It has answered before. */
static void test_last_answer_of_an_owner_counts(void **state)
{
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];

	(void)state;
	ask_start_two(&w);
	assert_true(ask_owner(worker, "web-0"));
	share_step(worker->share, w.now, 0);
	share_step(w.processes[0].share, w.now, 0);
	ask_stop(&w.processes[0]);
	share_step(worker->share, w.now, 0);
	assert_int_not_equal(share_role(worker->share), SHARE_WORKER);
	ask_check_answered(worker, 100);
	ask_stop_two(&w);
}

/* A worker that finds another owner asks it what the last one has not answered. */
static void test_next_owner_is_asked_again(void **state)
{
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	ask_start_two(&w);
	assert_true(ask_owner(worker, "web-0"));
	share_step(worker->share, w.now, 0); /* sent, and read by nobody */
	ask_stop(&w.processes[0]);
	assert_true(ask_start(&w, 0, &err));
	share_step(w.processes[0].share, w.now, 0);
	for (unsigned i = 0; i < 6; i++) {
		w.now += EVREC_SECOND;
		share_step(worker->share, w.now, 0);
		share_step(w.processes[0].share, w.now, 0);
	}
	assert_int_equal(share_role(w.processes[0].share), SHARE_OWNER);
	assert_string_equal(w.processes[0].object, "web-0");
	ask_check_answered(worker, 100);
	ask_stop_two(&w);
}

/* ---- memory ---- */

/* Whatever fails, the worker can ask again, and is answered then. */
static void scenario(void)
{
	struct buf answer = { 0 };
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];
	evrec_error err = { 0 };
	bool asked;

	ask_start_two(&w);
	w.processes[0].answer_len = 200000;
	alloc_failure_arm();
	asked = share_ask(worker->share, ask_about("web-0"), &err);
	alloc_failure_check_error(asked, &err);
	ask_step(&w, 20);
	alloc_failure_ignore();
	alloc_failure_disarm();
	if (asked) {
		(void)share_take_answer(worker->share, &answer);
		share_forget_question(worker->share);
		buf_free(&answer);
	}
	/* The owner has done nothing wrong. */
	assert_int_equal(worker->errors, 0);
	for (unsigned i = 0; i < 4; i++) {
		w.now += 10 * EVREC_SECOND;
		ask_step(&w, 4);
	}
	assert_true(ask_owner(worker, "web-1"));
	ask_step(&w, 20);
	assert_string_equal(w.processes[0].object, "web-1");
	ask_check_answered(worker, 200000);
	ask_stop_two(&w);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worker_is_answered_by_the_owner),
		cmocka_unit_test(test_question_is_behind_the_events),
		cmocka_unit_test(test_long_answer_comes_in_parts),
		cmocka_unit_test(test_answer_that_would_be_too_long_is_none),
		cmocka_unit_test(test_object_that_is_too_long_is_refused),
		cmocka_unit_test(test_late_answer_is_ignored),
		cmocka_unit_test(test_owner_that_goes_away_is_not_waited_for),
		cmocka_unit_test(test_last_answer_of_an_owner_counts),
		cmocka_unit_test(test_next_owner_is_asked_again),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
