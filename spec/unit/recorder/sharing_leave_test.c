/* A worker of a shared recorder whose owner cannot write: it hears why, and what it leaves to the owner is not lost. */
#include "sharing_fixture.h"

#include <poll.h>

/* The owner has a thread, and so goes on while the worker waits. No file can be written at this path. */
static void open_sides(struct sharing_fixture *f, const char *path)
{
	static const enum evrec_drive drives[] = { EVREC_DRIVE_AUTO, EVREC_DRIVE_POLL };
	const int64_t deadline = unit_mono() + SOON;
	evrec_stats stats;

	sharing_fixture_init(f);
	for (size_t i = 0; i < 2; i++) {
		const evrec_broadcaster_options options = sharing_fixture_options(f, i, &f->sides[i]);

		assert_true(side_open_driven(&f->sides[i], &options, path, 25, drives[i]));
		do {
			evrec_broadcaster_poll(f->sides[i].b);
			evrec_broadcaster_get_stats(f->sides[i].b, &stats);
		} while (stats.share_role != (i == 0 ? EVREC_SHARE_OWNER : EVREC_SHARE_WORKER) &&
		         unit_mono() < deadline && poll(NULL, 0, 1) == 0);
	}
	assert_int_equal(stats.share_role, EVREC_SHARE_WORKER);
}

static void await_error(const struct side *side)
{
	const int64_t deadline = unit_mono() + SOON;

	while (side->errors == 0 && unit_mono() < deadline) {
		evrec_broadcaster_poll(side->b);
		(void)poll(NULL, 0, 1);
	}
	assert_true(side->errors != 0);
}

static void test_worker_hears_why_its_events_wait(void **state)
{
	struct sharing_fixture f;
	evrec_error err;

	open_sides(&f, tmpdir_path(*state, "missing/events"));
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	await_error(&f.sides[1]);
	assert_string_equal(f.sides[1].error_name, "transport");
	unit_check_contains(f.sides[1].error, "file: ");
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, 0, &err), EVREC_ETIMEOUT);
	unit_check_contains(err.message, "1 event still waits; the last error was transport");
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[1].b, 0, NULL), EVREC_ETIMEOUT);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, 0, NULL), EVREC_ELOST);
	sharing_fixture_close(&f);
}

static void test_worker_that_ends_leaves_its_events_to_the_owner(void **state)
{
	struct sharing_fixture f;
	evrec_sink_stats s;
	evrec_error err;

	open_sides(&f, tmpdir_path(*state, "missing/events"));
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[1].b, EVREC_SECOND / 20, &err), EVREC_ETIMEOUT);
	unit_check_contains(err.message, "2 events wait in the process that writes for all");
	s = side_stats(&f.sides[1]);
	assert_int_equal(s.forwarded, 2);
	assert_int_equal(s.pending, 0);
	assert_int_equal(s.dropped[EVREC_CAUSE_CLOSED], 0);
	assert_int_equal(f.sides[1].drops, 0);
	/* They are the owner's now. If it cannot write them either, it says so: nobody else does. */
	assert_int_equal(side_stats(&f.sides[0]).pending, 2);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, 0, &err), EVREC_ELOST);
	unit_check_contains(err.message, "2 events were not written: closed");
	assert_int_equal(side_stats(&f.sides[0]).dropped[EVREC_CAUSE_CLOSED], 2);
	sharing_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_worker_hears_why_its_events_wait),
		TMPDIR_TEST(test_worker_that_ends_leaves_its_events_to_the_owner),
	};

	return cmocka_run_group_tests_name("sharing_leave", tests, NULL, NULL);
}
