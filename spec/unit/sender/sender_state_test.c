/* A state that is written before something is sent, so that the next owner knows each name that a server may have. */
#include "sender_fixture.h"
#include "spool_file.h"

#include "spool/spooler.h"

#define MS (EVREC_SECOND / 1000)

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

/* A sender without a thread whose state is written first. `spooler` becomes the sender's, or is NULL. */
static struct state_file *open_spooled(struct sender_fixture *f, struct fake_state *state, void **test,
                                       struct spooler *spooler)
{
	struct state_file *file = state_file_new(str_from(tmpdir_path(*test, "state")), 1);
	struct buf contents = { 0 };
	evrec_str records;
	evrec_error err;

	*state = (struct fake_state){ 0 };
	sender_fixture_open_spooled(f, true, evrec_clock_fake(0), spooler);
	assert_int_equal(state_file_open(file, &contents, &records, &err), STATE_OPENED);
	buf_free(&contents);
	state_file_use(file, &source, state);
	state_file_on_change(file, wake, NULL);
	state_file_lead(file);
	sender_set_state(f->sender, file);
	return file;
}

static struct state_file *open_sender(struct sender_fixture *f, struct fake_state *state, void **test)
{
	return open_spooled(f, state, test, NULL);
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

	submit(&f, file, 1);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_sent(&f), 1);
	assert_true(state_file_has(file, state_file_changes(file)));
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
	struct state_file *file =
		open_spooled(&f, &state, test, spooler_new(str_from(folder), SPOOL_AFTER, &fake_write_codec));

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
	assert_true(state_file_has(file, state_file_changes(file)));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_is_written_before_a_write_is_sent),
		TMPDIR_TEST(test_nothing_is_sent_while_the_state_is_in_use),
		TMPDIR_TEST(test_a_poll_is_due_while_the_state_is_in_use),
		TMPDIR_TEST(test_no_row_is_written_while_the_state_is_in_use),
		TMPDIR_TEST(test_the_end_waits_for_no_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
