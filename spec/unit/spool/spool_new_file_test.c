/*
 * A sender makes a new file in its spool while another spooler looks for files without an owner: between the two system
 * calls that make a lock file and lock it. The test replaces fcntl, the second of the two.
 */
#define _GNU_SOURCE

#include "spool_fixture.h"

#include "spool/spool_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define EVENTS 3
#define LOOKS 3 /* one less than the names that a new file may try */

static const char *folder;
static unsigned looks; /* so many of the next locks are taken after the other spooler has looked at the folder */
static bool holds;     /* the other spooler still has the lock when the sender asks for it */
static struct spool *held;

static bool look_at(void *ctx, const char *name)
{
	struct spool *spool = spool_folder_file(folder, name);
	evrec_error err;

	(void)ctx;
	assert_non_null(spool);
	if (holds) {
		assert_int_equal(spool_reserve(spool, &err), SPOOL_CLAIMED);
		held = spool;
		return false;
	}
	assert_int_equal(spool_claim(spool, &err), SPOOL_GONE);
	spool_free(spool);
	return true;
}

static void look(void)
{
	const unsigned more = looks - 1;
	evrec_error err;

	looks = 0; /* the other spooler takes locks too */
	assert_true(spool_folder_each(folder, look_at, NULL, &err));
	looks = more;
}

static void stop_holding(void)
{
	if (held != NULL) {
		const int error = errno;

		spool_release(held);
		spool_free(held);
		held = NULL;
		errno = error;
	}
}

int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;
	bool takes_lock;
	int result;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	takes_lock = command == F_OFD_SETLK && ((struct flock *)argument)->l_type == F_WRLCK;
	if (takes_lock && looks != 0) {
		look();
	}
	result = (int)syscall(SYS_fcntl, fd, command, argument);
	if (takes_lock) {
		stop_holding();
	}
	return result;
}

/* The server does not answer. */
static void open_sender(struct sender_fixture *f, bool journal)
{
	struct spooler *spooler = spooler_new(str_from(folder), SPOOL_AT_END, &fake_write_codec);

	if (journal) {
		spooler_use_journal(spooler, 1 << 20);
	}
	sender_fixture_open_spooled(f, true, evrec_clock_real(), spooler);
	f->protocol->silent = true;
	for (unsigned i = 1; i <= EVENTS; i++) {
		fake_write_submit(f->ob, i, 1);
	}
}

static void end_sender(struct sender_fixture *f)
{
	assert_false(sender_join(f->sender, unit_mono()));
	assert_int_equal(looks, 0);
	spool_fixture_check_silent(f);
	spool_fixture_release(f, EVENTS, 0);
	assert_int_equal(spool_fixture_count_rows(folder), EVENTS);
	assert_int_equal(rmdir(folder), 0);
}

static bool is_journal(void *ctx, const char *name)
{
	struct spool *spool = spool_folder_file(folder, name);
	bool *there = ctx;

	assert_non_null(spool);
	*there = *there || access(spool_pending_path(spool), F_OK) == 0;
	spool_free(spool);
	return true;
}

/* A process that is killed after its first round loses nothing. */
static void check_journal_is_made(void *state)
{
	struct sender_fixture f;
	bool there = false;
	evrec_error err;

	folder = tmpdir_path(state, "spool");
	looks = LOOKS;
	open_sender(&f, true);
	sender_step(f.sender);
	assert_true(spool_folder_each(folder, is_journal, &there, &err));
	assert_true(there);
	end_sender(&f);
}

static void test_journal_is_made_at_once(void **state)
{
	holds = false;
	check_journal_is_made(*state);
}

static void test_journal_is_made_while_the_other_has_the_lock(void **state)
{
	holds = true;
	check_journal_is_made(*state);
}

static void test_rows_are_written_at_the_end(void **state)
{
	struct sender_fixture f;

	folder = tmpdir_path(*state, "spool");
	holds = false;
	open_sender(&f, false);
	sender_step(f.sender);
	looks = LOOKS;
	end_sender(&f);
}

/* Then no file is left. */
static void test_a_name_that_is_taken_each_time_is_told(void **state)
{
	struct sender_fixture f;

	folder = tmpdir_path(*state, "spool");
	holds = false;
	looks = LOOKS + 1;
	open_sender(&f, true);
	sender_step(f.sender);
	spool_fixture_check_message(&f, "is in use by another process or sink");
	assert_int_equal(rmdir(folder), 0);
	end_sender(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_journal_is_made_at_once),
		SPOOL_TEST(test_journal_is_made_while_the_other_has_the_lock),
		SPOOL_TEST(test_rows_are_written_at_the_end),
		SPOOL_TEST(test_a_name_that_is_taken_each_time_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
