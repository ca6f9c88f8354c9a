/* A state that is written before something is sent, so that the next owner knows each name that a server may have. */
#define _GNU_SOURCE

#include "file_limit.h"
#include "sender_fixture.h"
#include "spool_file.h"
#include "spool_fixture.h"

#include "spool/spooler.h"

#include <dlfcn.h>

#define MS (EVREC_SECOND / 1000)

static unsigned threads; /* that were started */

/* In the place of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");

	threads++;
	memcpy(&real, &symbol, sizeof(real));
	return real(thread, attr, run, arg);
}

/* A state of which nothing is known but whether another thread is using it. */
struct fake_state {
	bool in_use;
	unsigned writes; /* its changes were taken so often */
};

static bool take_changes(void *ctx, bool begin, size_t max, struct buf *out, size_t *left)
{
	struct fake_state *state = ctx;

	(void)begin;
	(void)max;
	*left = 0;
	if (state->in_use) {
		return false;
	}
	state->writes++;
	buf_put(out, "x", 1);
	return true;
}

static bool take_all(void *ctx, uint64_t *cursor, size_t max, struct buf *out, size_t *taken)
{
	(void)cursor;
	(void)max;
	*taken = 0;
	return take_changes(ctx, false, 0, out, taken);
}

static void free_state(void *ctx)
{
	(void)ctx;
}

static void wake(void *ctx)
{
	(void)ctx;
}

static const struct state_source source = { take_changes, take_all, free_state };

/* A sender whose state is written first. `spooler` becomes the sender's, or is NULL. */
static struct state_file *open_spooled(struct sender_fixture *f, struct fake_state *state, void **test,
                                       struct spooler *spooler, evrec_clock *clock)
{
	struct state_file *file = state_file_new(str_from(tmpdir_path(*test, "state")), 1);
	struct buf contents = { 0 };
	evrec_str records;
	evrec_error err;

	*state = (struct fake_state){ 0 };
	sender_fixture_open_spooled(f, evrec_clock_is_fake(clock), clock, spooler);
	assert_int_equal(state_file_open(file, &contents, &records, &err), STATE_OPENED);
	buf_free(&contents);
	state_file_use(file, &source, state);
	state_file_on_change(file, wake, NULL);
	state_file_lead(file);
	sender_set_state(f->sender, file);
	return file;
}

/* Without a thread, nor a spool. */
static struct state_file *open_sender(struct sender_fixture *f, struct fake_state *state, void **test)
{
	return open_spooled(f, state, test, NULL, evrec_clock_fake(0));
}

static void submit(struct sender_fixture *f, struct state_file *file, unsigned id)
{
	state_file_changed(file);
	fake_write_submit(f->ob, id, 1);
}

static void close_sender(struct sender_fixture *f)
{
	evrec_clock *clock = f->clock;

	sender_fixture_close(f);
	evrec_clock_release(clock);
}

static void test_is_written_before_a_write_is_sent(void **test)
{
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file = open_sender(&f, &state, test);

	/* The second time comes within the second between two writes that nothing hurries. */
	for (unsigned i = 1; i <= 2; i++) {
		submit(&f, file, i);
		sender_step(f.sender);
		assert_int_equal(sender_fixture_sent(&f), i);
		assert_true(state_file_has(file, state_file_changes(file)));
	}
	close_sender(&f);
}

/* The write waits, which is no try, until the state can be written. */
static void test_nothing_is_sent_while_the_state_is_in_use(void **test)
{
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file = open_sender(&f, &state, test);

	state.in_use = true;
	submit(&f, file, 1);
	submit(&f, file, 2);
	for (unsigned i = 0; i < 3; i++) {
		sender_step(f.sender);
		assert_int_equal(sender_fixture_sent(&f), 0);
		evrec_clock_set(f.clock, evrec_clock_now(f.clock) + 50 * MS);
	}
	assert_int_equal(sender_fixture_stats(&f).pending, 2);
	state.in_use = false;
	sender_step(f.sender);
	assert_int_equal(sender_fixture_sent(&f), 2);
	assert_int_equal(sender_fixture_stats(&f).retries, 0);
	assert_true(state_file_has(file, state_file_changes(file)));
	close_sender(&f);
}

/* A poll is asked for soon, although nothing is under way. */
static void test_a_poll_is_due_while_the_state_is_in_use(void **test)
{
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file = open_sender(&f, &state, test);

	state.in_use = true;
	submit(&f, file, 1);
	sender_step(f.sender);
	assert_in_range(sender_step_delay(f.sender, EVREC_SECOND), 1, 50 * MS);
	state.in_use = false;
	close_sender(&f);
}

static unsigned count_rows(const char *folder)
{
	return spool_file_count(folder) == 0 ? 0 : spool_file_rows(spool_file_in(folder));
}

/* Whoever finds a row after a kill is to know its name, as if it had been sent. */
static void test_no_row_is_written_while_the_state_is_in_use(void **test)
{
	const char *folder = tmpdir_path(*test, "spool");
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file = open_spooled(
		&f, &state, test, spooler_new(str_from(folder), SPOOL_AFTER, &fake_write_codec), evrec_clock_fake(0));

	state.in_use = true;
	sender_step(f.sender); /* finds no file, so that what is submitted is sent at once */
	submit(&f, file, 1);
	for (unsigned i = 0; i < 4; i++) {
		evrec_clock_set(f.clock, evrec_clock_now(f.clock) + EVREC_SECOND);
		sender_step(f.sender);
		assert_int_equal(count_rows(folder), 0);
	}
	state.in_use = false;
	f.protocol->silent = true;
	evrec_clock_set(f.clock, evrec_clock_now(f.clock) + EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(count_rows(folder), 1);
	f.protocol->silent = false;
	close_sender(&f);
}

/* A process that ends sends what it has: an embedder's thread may have stopped with the state in its hands. */
static void test_the_end_waits_for_no_state(void **test)
{
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file = open_sender(&f, &state, test);

	state.in_use = true;
	submit(&f, file, 1);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_sent(&f), 0);
	sender_end(f.sender);
	/* sender_join steps it to the end, and checks that all was written. */
	close_sender(&f);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Nobody drives the sender, whatever comes, until the state has the counts of a killed process, and its journal is gone. */
static void test_sender_that_looks_ahead_sleeps(void **test)
{
	const char *folder = tmpdir_path(*test, "spool"), *journal;
	struct fake_state state;
	struct sender_fixture f;
	struct state_file *file;

	(void)spool_file_make_folder(folder);
	journal = spool_fixture_die(folder, 1);
	file = open_spooled(&f, &state, test, spooler_new(str_from(folder), SPOOL_AFTER, &fake_write_sure_codec),
	                    evrec_clock_real());
	threads = 0;
	sender_look_ahead(f.sender);
	assert_int_equal(fake_write_count_brought(f.ob), 1);
	state_file_changed(file);
	sender_begin(f.sender);
	assert_int_equal(threads, 0);
	assert_true(is_there(journal));
	sender_end_look_ahead(f.sender);
	assert_int_equal(threads, 1);
	assert_true(state_file_has(file, state_file_changes(file)));
	assert_false(is_there(journal));
	sender_fixture_wait_sent(&f, 1);
	sender_fixture_wait_empty(&f);
	sender_fixture_close(&f);
}

/* The embedder's thread looks ahead: a file that may not grow raises no signal in it. */
static void test_file_that_may_not_grow_harms_nobody(void **test)
{
	const char *folder = tmpdir_path(*test, "spool");
	struct fake_state state;
	struct sender_fixture f;

	(void)spool_file_make_folder(folder);
	(void)spool_fixture_die(folder, 1);
	(void)open_spooled(&f, &state, test, spooler_new(str_from(folder), SPOOL_AFTER, &fake_write_sure_codec),
	                   evrec_clock_real());
	file_limit_count_signals();
	file_limit_set(4096);
	sender_look_ahead(f.sender);
	sender_end_look_ahead(f.sender);
	file_limit_set(RLIM_INFINITY);
	assert_int_equal(file_limit_signals, 0);
	spool_fixture_check_message(&f, "a file stays in the spool: ");
	sender_fixture_close(&f);
	(void)signal(SIGXFSZ, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_is_written_before_a_write_is_sent),
		TMPDIR_TEST(test_nothing_is_sent_while_the_state_is_in_use),
		TMPDIR_TEST(test_a_poll_is_due_while_the_state_is_in_use),
		TMPDIR_TEST(test_no_row_is_written_while_the_state_is_in_use),
		TMPDIR_TEST(test_the_end_waits_for_no_state),
		TMPDIR_TEST(test_sender_that_looks_ahead_sleeps),
		TMPDIR_TEST(test_file_that_may_not_grow_harms_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
