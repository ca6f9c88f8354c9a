/* A sender sends deferred writes at their time, and at its end those whose time is to come. */
#include "sender_fixture.h"

#define DUE (1800 * EVREC_SECOND)

static void submit_deferred(struct sender_fixture *f, unsigned id)
{
	struct fake_write draft = { .count = 2 };
	const struct occurrence occurrence = { .id = id, .verb = VERB_PATCH, .due = DUE, .draft = &draft };
	enum evrec_cause cause;

	snprintf(draft.name, sizeof(draft.name), "n%u", id);
	assert_true(outbox_submit(f->ob, &occurrence, &cause));
}

static void test_thread_sends_it_at_its_time(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, clock);
	submit_deferred(&f, 1);
	assert_int_equal(sender_fixture_stats(&f).counted, 1);
	assert_false(sender_is_stalled(f.sender));
	evrec_clock_set(clock, DUE);
	sender_fixture_wait_sent(&f, 1);
	sender_fixture_close(&f);
	evrec_clock_release(clock);
}

static void test_end_sends_it(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct sender_fixture f;

	(void)state;
	for (int threadless = 0; threadless <= 1; threadless++) {
		sender_fixture_open(&f, threadless, clock);
		submit_deferred(&f, 1);
		sender_end(f.sender);
		assert_int_equal(sender_fixture_stats(&f).counted, 0);
		sender_fixture_close(&f);
	}
	evrec_clock_release(clock);
}

static void test_released_sender_sends_it(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct sender_fixture f;
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	sender_fixture_open(&f, false, clock);
	f.protocol->success_fd = fds[1];
	submit_deferred(&f, 1);
	sender_release(f.sender);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	sender_fixture_wait_freed(&f);
	(void)close(fds[0]);
	(void)close(fds[1]);
	evrec_clock_release(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_sends_it_at_its_time),
		cmocka_unit_test(test_end_sends_it),
		cmocka_unit_test(test_released_sender_sends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
