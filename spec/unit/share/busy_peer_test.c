/* A worker that is very busy, or hostile, takes no more than its part of an owner's step; nor does a want of descriptors. */
#include "share_pair.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "alloc_failure.h"
#include "raw_connection.h"

static const unsigned char instance[FRAME_ID_SIZE] = "0123456789abcde";

/* Sends the frame. False: there is no room. */
static bool send_frame(int fd, struct buf *frame, uint32_t *seq)
{
	frame_set_seq(frame, *seq);
	if (endpoint_send(fd, frame->data, frame->len) != 1) {
		return false;
	}
	++*seq;
	return true;
}

/* A connection whose events are, again and again, as many as a frame can have. */
static int connect_flood(struct share_pair *p, struct buf *more, uint32_t *seq)
{
	static const struct frame_option same = { { "qps", 3 }, 1 };
	const struct frame_times once = { 0, 1, T0, T0 }, many = { 0, LEDGER_SEND_MAX, T0, T0 };
	struct buf frame = { 0 }, whole = { 0 };
	evrec_fields f;
	size_t next;
	const int fd = raw_connect(p->name);

	assert_true(fd >= 0);
	assert_true(frame_hello(&frame, instance, &same, 1));
	assert_true(send_frame(fd, &frame, seq));
	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Service"), .name = EVREC_STR("a"), .ns = f.ns };
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("R");
	f.count = 1;
	buf_put(&whole, "\003a.b", 4); /* the event's name */
	frame_event_put(&whole, &f, NULL, 0);
	assert_true(frame_event(&frame, 0, &once, buf_str(&whole), 0, &next));
	assert_true(send_frame(fd, &frame, seq));
	assert_true(frame_begin(more, FRAME_MORE, 0));
	while (frame_has_room(more)) {
		frame_add_times(more, &many);
	}
	buf_free(&frame);
	buf_free(&whole);
	return fd;
}

static void test_step_takes_a_part_of_a_flood(void **state)
{
	struct buf more = { 0 };
	struct share_pair p;
	uint32_t seq = 0;
	int64_t before;
	int fd;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	fd = connect_flood(&p, &more, &seq);
	share_pair_step(&p, 2);
	assert_int_equal(p.sides[0].occurrences, 1);
	assert_true(send_frame(fd, &more, &seq));
	for (unsigned i = 0; i < 100; i++) {
		(void)share_side_add(&p.sides[1], "b");
		share_pair_step(&p, 1);
	}
	/* The other one is served meanwhile, and the flood goes on without a wait. */
	assert_in_range(p.sides[0].most, 1000, 10000);
	assert_in_range(share_side_counts(&p.sides[1]).forwarded, 90, 100);
	p.sides[0].settles = false;
	share_pair_step(&p, 1);
	before = unit_mono();
	share_step(p.sides[0].share, p.now, SOON);
	assert_true(unit_mono() - before < SOON);
	(void)close(fd);
	buf_free(&more);
	share_pair_free(&p);
}

/* Of one worker, all occurrences count. */
static void test_occurrences_beyond_a_step_are_recorded_later(void **state)
{
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	for (unsigned i = 0; i < 25000; i++) {
		(void)share_side_add(&p.sides[1], "a");
	}
	(void)share_side_add(&p.sides[1], "b");
	share_pair_step(&p, 20);
	assert_in_range(p.sides[0].most, 1000, 10000);
	assert_int_equal(p.sides[0].occurrences, 25001);
	assert_int_equal(share_side_counts(&p.sides[1]).forwarded, 25001);
	share_pair_free(&p);
}

/* ---- descriptors ---- */

/* All descriptors of this process are taken, until it is called again. */
static void take_descriptors(bool take)
{
	static struct rlimit before;
	struct rlimit none;
	int fd;

	if (!take) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		return;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd = dup(0);
	assert_true(fd >= 0);
	(void)close(fd);
	none = (struct rlimit){ (rlim_t)fd, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void test_owner_without_descriptors_waits(void **state)
{
	struct share_options options;
	struct share_side *owner;
	struct share_pair p;
	int64_t before;

	(void)state;
	share_pair_init(&p);
	options = share_pair_options(&p);
	owner = share_pair_start(&p, 0, &options);
	share_pair_step(&p, 2);
	(void)share_pair_start(&p, 1, &options);
	share_side_step(&p, &p.sides[1]);
	take_descriptors(true);
	before = unit_mono();
	for (unsigned i = 0; i < 3; i++) {
		share_step(owner->share, p.now, EVREC_SECOND / 50);
	}
	take_descriptors(false);
	/* The connection waits, and the socket stays readable: but no step takes that for work. */
	assert_true(unit_mono() - before >= 2 * (EVREC_SECOND / 50));
	assert_int_equal(owner->errors, 1);
	assert_string_equal(owner->error_name, "share");
	unit_check_contains(owner->error, "accept: Too many open files");
	p.now += 2 * EVREC_SECOND;
	(void)share_side_add(&p.sides[1], "a");
	share_pair_step(&p, 6);
	assert_true(share_is_settled(p.sides[1].share));
	assert_int_equal(owner->errors, 1);
	share_pair_free(&p);
}

/* ---- memory ---- */

/* Whatever fails while an owner takes what is beyond a step, and a full worker drops, all is recorded or counted in the end. */
static void scenario(void)
{
	struct share_options options;
	struct ledger_counts counts;
	struct share_side *worker;
	struct share_pair p;
	evrec_event *event;
	uint32_t n;

	share_pair_init(&p);
	options = share_pair_options(&p);
	options.limits.max_events = 2;
	(void)share_pair_start(&p, 0, &options);
	share_pair_step(&p, 1);
	worker = share_pair_start(&p, 1, &options);
	share_set_full(worker->share, EVREC_DROP_OLDEST);
	alloc_failure_arm();
	(void)share_side_add(worker, "a");
	(void)share_side_add(worker, "b");
	for (unsigned i = 0; i < 6000; i++) {
		(void)share_side_add(worker, "c");
	}
	event = share_next_dropped(worker->share, &n);
	evrec_event_release(event);
	share_pair_step(&p, 8);
	alloc_failure_ignore();
	alloc_failure_disarm();
	for (size_t i = 0; i < 4; i++) {
		p.now += 10 * EVREC_SECOND;
		share_pair_step(&p, 8);
	}
	assert_true(share_is_settled(worker->share));
	counts = share_side_counts(worker);
	assert_int_equal(counts.forwarded + counts.dropped[EVREC_CAUSE_QUEUE_FULL] + counts.dropped[EVREC_CAUSE_MEMORY],
	                 6002);
	assert_true(p.sides[0].occurrences >= counts.forwarded);
	share_pair_free(&p);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step_takes_a_part_of_a_flood),
		cmocka_unit_test(test_occurrences_beyond_a_step_are_recorded_later),
		cmocka_unit_test(test_owner_without_descriptors_waits),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("busy_peer", tests, NULL, NULL);
}
