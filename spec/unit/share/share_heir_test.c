/* Who becomes the next owner, and gets the state of the last one, if processes end one after the other. */
#include "share_idle.h"
#include "tmpdir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROCESSES 3

struct process {
	struct share *share;
	const char *state; /* to be handed over */
	char loaded[64];
	pthread_t thread; /* of drive */
	atomic_bool stops;
};

struct world {
	char name[108];
	int64_t now;
	struct process processes[PROCESSES];
};

/* ---- what a share calls ---- */

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	(void)name;
	fail_msg("%s", message);
}

static bool on_save(void *ctx, size_t sink, struct buf *out)
{
	const struct process *p = ctx;

	(void)sink;
	buf_put_str(out, str_from(p->state));
	return p->state != NULL;
}

/* It has the state from now on. */
static void on_load(void *ctx, size_t sink, evrec_str state)
{
	struct process *p = ctx;

	(void)sink;
	(void)snprintf(p->loaded, sizeof(p->loaded), "%.*s", (int)state.len, state.data);
	p->state = p->loaded;
}

static const struct share_ops ops = {
	.record = share_idle_record,
	.flush = share_idle_flush,
	.begin = share_idle_begin,
	.connected = share_idle_connected,
	.left = share_idle_left,
	.lost = share_idle_lost,
	.error = on_error,
	.save_state = on_save,
	.load_state = on_load,
};

/* ---- the world ---- */

static struct process *start(struct world *w, size_t i)
{
	const struct share_options options = { .name = str_from(w->name), .limits = { 1000, 1 << 24 } };
	const struct frame_option same = { { "qps", 3 }, 1 };
	struct process *p = &w->processes[i];

	p->share = share_new(&options, &ops, p, NULL);
	assert_non_null(p->share);
	assert_true(share_set_options(p->share, &same, 1, 1));
	return p;
}

static void step(struct world *w, size_t times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < PROCESSES; i++) {
			if (w->processes[i].share != NULL) {
				share_step(w->processes[i].share, w->now, 0);
			}
		}
	}
}

static void end(struct process *p)
{
	share_end(p->share, SOON);
	share_free(p->share);
	p->share = NULL;
}

/* An owner with a state, and workers. */
static struct process *start_all(struct world *w, size_t n)
{
	struct process *owner = start(w, 0);

	owner->state = "the state";
	step(w, 1);
	for (size_t i = 1; i < n; i++) {
		(void)start(w, i);
		step(w, 4);
		assert_int_equal(share_role(w->processes[i].share), SHARE_WORKER);
	}
	return owner;
}

static int setup(void **state)
{
	static unsigned number;
	struct world *w = calloc(1, sizeof(*w));

	(void)snprintf(w->name, sizeof(w->name), "@evrec-heir-test-%ld-%u", (long)getpid(), number++);
	w->now = T0;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < PROCESSES; i++) {
		share_free(w->processes[i].share);
	}
	free(w);
	return 0;
}

/* ---- a process of its own: a thread ---- */

static void *drive(void *ctx)
{
	struct process *p = ctx;

	while (!atomic_load(&p->stops)) {
		share_step(p->share, unit_mono(), EVREC_SECOND / 100);
	}
	return NULL;
}

static void begin_thread(struct process *p)
{
	assert_int_equal(pthread_create(&p->thread, NULL, drive, p), 0);
}

static void end_thread(struct process *p)
{
	const int64_t deadline = unit_mono() + SOON;

	while (share_role(p->share) != SHARE_OWNER && unit_mono() < deadline) {
		(void)usleep(1000);
	}
	atomic_store(&p->stops, true);
	share_wake(p->share);
	assert_int_equal(pthread_join(p->thread, NULL), 0);
}

/* ---- an end at a moment between two calls of the system ---- */

static _Atomic(struct process *) ends_before_send;

/* In place of the C library's. */
ssize_t send(int fd, const void *data, size_t len, int flags)
{
	struct process *p = atomic_exchange(&ends_before_send, NULL);

	if (p != NULL) {
		end(p);
	}
	return sendto(fd, data, len, flags, NULL, 0);
}

/* ---- tests ---- */

/* A worker that sends to an owner that has gone takes what the owner had said before. */
static void test_heir_that_sends_to_the_owner_as_it_ends(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *heir = &w->processes[1];

	share_flush(heir->share);
	ends_before_send = owner;
	step(w, 3);
	assert_null(owner->share);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "the state");
}

static void test_process_that_is_about_to_end_is_not_the_heir(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 3), *stays = &w->processes[1], *ends = &w->processes[2];

	share_close(ends->share);
	step(w, 3);
	end(owner);
	step(w, 5);
	assert_int_equal(share_role(stays->share), SHARE_OWNER);
	assert_string_equal(stays->loaded, "the state");
	assert_int_equal(share_role(ends->share), SHARE_WORKER);
}

/* The system reports an owner that has closed its socket with unread frames before what that has sent. */
static void test_heir_whose_frames_the_owner_has_not_read(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *heir = &w->processes[1];

	share_flush(heir->share);
	share_step(heir->share, w->now, 0);
	end(owner);
	step(w, 3);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "the state");
}

static void test_process_that_is_about_to_end_is_the_heir_if_there_is_no_other(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *last = &w->processes[1];

	share_close(last->share);
	step(w, 3);
	end(owner);
	step(w, 3);
	assert_int_equal(share_role(last->share), SHARE_OWNER);
	assert_string_equal(last->loaded, "the state");
}

/* A killed owner names no heir: a process that is about to end leaves it to others, for a while. */
static void test_process_that_is_about_to_end_binds_last(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *ends = &w->processes[1];

	share_close(ends->share);
	step(w, 3);
	share_free(owner->share);
	owner->share = NULL;
	step(w, 3);
	assert_int_equal(share_role(ends->share), SHARE_UNKNOWN);
	w->now += EVREC_SECOND;
	step(w, 3);
	assert_int_equal(share_role(ends->share), SHARE_OWNER);
}

/* It was made the heir, and learns that when it ends. */
static void test_heir_that_ends_before_it_owns_passes_the_state_on(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 3), *stays = &w->processes[1], *heir = &w->processes[2];

	end(owner);
	begin_thread(stays);
	end(heir);
	end_thread(stays);
	assert_string_equal(stays->loaded, "the state");
}

/* It owns already, but the workers of the last owner have not come yet. */
static void test_heir_that_ends_at_once_waits_for_the_others(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 3), *stays = &w->processes[1], *heir = &w->processes[2];

	end(owner);
	share_step(heir->share, w->now, 0);
	share_step(heir->share, w->now, 0);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	begin_thread(stays);
	end(heir);
	end_thread(stays);
	assert_string_equal(stays->loaded, "the state");
}

/* A process that has just begun finds the name bound, although the heir has not read yet that it is the owner. */
static void heir_comes_before_a_new_process(struct world *w)
{
	struct process *owner = start_all(w, 2), *heir = &w->processes[1], *new;

	share_leave(owner->share);
	step(w, 2);
	end(owner);
	new = start(w, 2);
	share_step(new->share, w->now, 0);
	assert_int_not_equal(share_role(new->share), SHARE_OWNER);
	step(w, 4);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "the state");
	assert_int_equal(share_role(new->share), SHARE_WORKER);
	/* Once more, from one that was given the name. */
	share_leave(heir->share);
	step(w, 2);
	end(heir);
	step(w, 2);
	assert_int_equal(share_role(new->share), SHARE_OWNER);
	assert_string_equal(new->loaded, "the state");
}

static void test_heir_comes_before_a_new_process(void **state)
{
	heir_comes_before_a_new_process(*state);
}

static void test_heir_of_a_path_comes_before_a_new_process(void **state)
{
	struct world *w = *state;
	void *dir;

	assert_int_equal(tmpdir_setup(&dir), 0);
	(void)snprintf(w->name, sizeof(w->name), "%s", tmpdir_path(dir, "share"));
	heir_comes_before_a_new_process(w);
	/* The lock went along: nobody else can have it, and the last owner removes the socket. */
	assert_int_equal(access(w->name, F_OK), 0);
	end(&w->processes[2]);
	assert_int_equal(access(w->name, F_OK), -1);
	assert_int_equal(tmpdir_teardown(&dir), 0);
}

/* A worker that hangs would keep the name for as long. */
static void test_worker_that_answers_is_the_heir(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 3), *answers = &w->processes[1], *hangs = &w->processes[2];

	begin_thread(answers);
	share_leave(owner->share);
	share_step(owner->share, w->now, 0);
	end(owner);
	end_thread(answers);
	assert_string_equal(answers->loaded, "the state");
	step(w, 5);
	assert_int_equal(share_role(answers->share), SHARE_OWNER);
	assert_int_equal(share_role(hangs->share), SHARE_WORKER);
}

/* It takes few steps from now on. Without an heir the owner lets go of the name. */
static void test_worker_that_declines_is_not_given_the_name(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *declines = &w->processes[1], *new;

	assert_true(share_decline(declines->share));
	share_leave(owner->share);
	step(w, 3);
	end(owner);
	new = start(w, 2);
	share_step(new->share, w->now, 0);
	assert_int_equal(share_role(new->share), SHARE_OWNER);
	step(w, 4);
	assert_int_equal(share_role(declines->share), SHARE_WORKER);
	assert_null(declines->state);
}

static void test_worker_that_has_accepted_cannot_decline(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *heir = &w->processes[1];

	share_leave(owner->share);
	step(w, 2);
	assert_false(share_decline(heir->share));
	end(owner);
	step(w, 2);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "the state");
}

static void test_heir_gives_its_children_no_copy(void **state)
{
	struct world *w = *state;
	struct process *owner = start_all(w, 2), *heir = &w->processes[1];
	int forked[2];
	pid_t child;
	char c;

	share_leave(owner->share);
	step(w, 2);
	end(owner);
	step(w, 2);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_int_equal(pipe(forked), 0);
	child = fork();
	if (child == 0) {
		(void)!write(forked[1], "f", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(forked[0], &c, 1), 1);
	(void)close(forked[0]);
	(void)close(forked[1]);
	share_free(heir->share);
	heir->share = NULL;
	(void)start(w, 2);
	step(w, 2);
	(void)kill(child, SIGKILL);
	(void)unit_wait(child);
	assert_int_equal(share_role(w->processes[2].share), SHARE_OWNER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_process_that_is_about_to_end_is_not_the_heir),
		TEST(test_heir_that_sends_to_the_owner_as_it_ends),
		TEST(test_heir_whose_frames_the_owner_has_not_read),
		TEST(test_process_that_is_about_to_end_is_the_heir_if_there_is_no_other),
		TEST(test_process_that_is_about_to_end_binds_last),
		TEST(test_heir_that_ends_before_it_owns_passes_the_state_on),
		TEST(test_heir_that_ends_at_once_waits_for_the_others),
		TEST(test_heir_comes_before_a_new_process),
		TEST(test_heir_of_a_path_comes_before_a_new_process),
		TEST(test_worker_that_answers_is_the_heir),
		TEST(test_worker_that_declines_is_not_given_the_name),
		TEST(test_worker_that_has_accepted_cannot_decline),
		TEST(test_heir_gives_its_children_no_copy),
	};

	return cmocka_run_group_tests_name("share_heir", tests, NULL, NULL);
}
