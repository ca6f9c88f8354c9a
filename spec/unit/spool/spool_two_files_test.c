/* A process with rows in its own file, and in the file of an earlier process: what is written to both at its end. */
#define _GNU_SOURCE

#include "spool_file.h"
#include "spool_fixture.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>

static char full[1100]; /* the file whose next write fails; empty: none */

/* In the place of the C library's, for SQLite. */
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	char link[64], path[PATH_MAX] = "";

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (full[0] != '\0' && readlink(link, path, sizeof(path) - 1) > 0 && strcmp(path, full) == 0) {
		full[0] = '\0';
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, len, at);
}

/* An earlier process leaves a patch. */
static void leave_row(const char *path, unsigned id, char *file, size_t size)
{
	struct sender_fixture f;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	fake_write_submit(f.ob, id, 2);
	spool_fixture_end(&f, 1, 0);
	(void)snprintf(file, size, "%s", spool_file_in(path));
}

/* The occurrence's time is the fixture's, so that no row of it is due yet. */
static void submit(struct sender_fixture *f, unsigned id)
{
	struct fake_write draft = { .count = 1 };
	const struct occurrence occurrence = {
		.id = id, .verb = VERB_CREATE, .now = evrec_clock_now(f->clock), .draft = &draft
	};
	enum evrec_cause cause;

	(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
	assert_true(outbox_submit(f->ob, &occurrence, &cause));
}

static void step_at(struct sender_fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
}

/* The disk fills up after the own file was written, and before the other one is: no event becomes two rows. */
static void test_disk_fills_up_between_two_files(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	char found[1024], aside[1100];

	/* Another name hides the file of the earlier process until this process has a file of its own. */
	leave_row(path, 7, found, sizeof(found));
	(void)snprintf(aside, sizeof(aside), "%s.aside", found);
	assert_int_equal(rename(found, aside), 0);
	sender_fixture_open_spooled(&f, true, evrec_clock_fake(T0),
	                            spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	f.protocol->silent = true;
	submit(&f, 1);
	step_at(&f, T0);
	step_at(&f, T0 + 2 * EVREC_SECOND);
	assert_int_equal(spool_file_count(path), 1);
	assert_int_equal(rename(aside, found), 0);
	step_at(&f, T0 + 3 * EVREC_SECOND);
	step_at(&f, T0 + 3 * EVREC_SECOND);
	assert_int_equal(sender_fixture_stats(&f).restored, 1);
	/* The object of the earlier process's patch does not exist, so its row becomes a create. */
	f.protocol->silent = false;
	f.protocol->answers_a_step = 1;
	f.protocol->status = 404;
	step_at(&f, T0 + 3 * EVREC_SECOND);
	f.protocol->silent = true;
	submit(&f, 2);
	submit(&f, 3);
	(void)snprintf(full, sizeof(full), "%s-wal", found);
	assert_false(sender_join(f.sender, 0));
	assert_string_equal(full, "");
	spool_fixture_release(&f, 4, 0);
	evrec_clock_release(f.clock);
	assert_int_equal(spool_fixture_count_rows(path), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_disk_fills_up_between_two_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
