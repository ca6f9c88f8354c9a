/*
 * Two senders begin with one folder: one looks for files without an owner between the two system calls by which the other
 * makes and locks the lock file of a new file. The test replaces fcntl, the second of the two.
 */
#define _GNU_SOURCE

#include "spool_fixture.h"

#include "spool/spool_folder.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define EVENTS 3
#define LOOKS 3

static const char *folder;
static unsigned looks; /* so many of the next locks are taken after the other sender has looked at the folder */

static bool claim(void *ctx, const char *name)
{
	struct spool *spool = spool_folder_file(folder, name);
	evrec_error err;

	(void)ctx;
	assert_non_null(spool);
	assert_int_not_equal(spool_claim(spool, &err), SPOOL_REFUSED);
	spool_free(spool);
	return true;
}

static void look(void)
{
	const unsigned more = looks - 1;
	evrec_error err;

	looks = 0; /* the other sender takes locks too */
	assert_true(spool_folder_each(folder, claim, NULL, &err));
	looks = more;
}

int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_OFD_SETLK && looks != 0 && ((struct flock *)argument)->l_type == F_WRLCK) {
		look();
	}
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

static void record(struct sender_fixture *f)
{
	f->protocol->silent = true;
	for (unsigned i = 1; i <= EVENTS; i++) {
		fake_write_submit(f->ob, i, 1);
	}
}

/* Its process could be killed at once. */
static void test_journal_is_made_at_once(void **state)
{
	struct spooler *spooler;
	struct sender_fixture f;

	folder = tmpdir_path(*state, "spool");
	spooler = spooler_new(str_from(folder), SPOOL_AT_END, &fake_write_codec);
	spooler_use_journal(spooler, 1 << 20);
	sender_fixture_open_spooled(&f, true, evrec_clock_real(), spooler);
	looks = LOOKS;
	record(&f);
	sender_step(f.sender);
	assert_int_equal(looks, 0);
	spool_fixture_check_silent(&f);
	spool_fixture_end(&f, EVENTS, 0);
	assert_int_equal(spool_fixture_count_rows(folder), EVENTS);
}

static void test_rows_are_written_at_the_end(void **state)
{
	struct sender_fixture f;

	folder = tmpdir_path(*state, "spool");
	spool_fixture_open(&f, true, folder);
	record(&f);
	sender_step(f.sender);
	looks = LOOKS;
	assert_false(sender_join(f.sender, unit_mono()));
	assert_int_equal(looks, 0);
	spool_fixture_check_silent(&f);
	spool_fixture_release(&f, EVENTS, 0);
	assert_int_equal(spool_fixture_count_rows(folder), EVENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_journal_is_made_at_once),
		SPOOL_TEST(test_rows_are_written_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
