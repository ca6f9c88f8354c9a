/* The size of parts follows a receiver's limit, and costs few bodies that are sent twice. */
#include "unit.h"

#include "sink/otlp.h"

#define MAX ((size_t)1 << 20)
#define KIB ((size_t)1024)

/* A receiver that takes bodies of up to `limit` bytes, and a sender with enough to send. */
struct world {
	struct otlp_size size;
	size_t limit, taken, refused; /* bytes */
	size_t largest;               /* of the parts that were taken */
};

/* A part that is as large as it may be, or, if that is less, `most` bytes; and the pieces of it. */
static void send_part(struct world *w, size_t most, bool piece)
{
	struct otlp_part part = { .records = 100, .piece = piece };
	size_t limit = otlp_size_limit(&w->size, &part);

	part.bytes = limit < most ? limit : most;
	otlp_size_sent(&w->size, &part);
	otlp_size_answered(&w->size, &part, part.bytes > w->limit, part.bytes <= w->limit);
	if (part.bytes <= w->limit) {
		w->taken += part.bytes;
		w->largest = part.bytes > w->largest ? part.bytes : w->largest;
		return;
	}
	w->refused += part.bytes;
	send_part(w, part.bytes / 2, true);
	send_part(w, part.bytes / 2, true);
}

static struct world begin(size_t limit)
{
	struct world w = { .limit = limit };

	otlp_size_begin(&w.size, MAX);
	return w;
}

static void send_parts(struct world *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		send_part(w, MAX, false);
	}
}

static void test_a_limit_costs_few_bytes(void **state)
{
	static const size_t limits[] = { 600 * KIB, 511 * KIB, 100 * KIB, 3 * KIB };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct world w = begin(limits[i]);

		send_parts(&w, 20);
		w.taken = w.refused = w.largest = 0;
		send_parts(&w, 3000);
		assert_true(w.refused < w.taken / 50);
		assert_true(w.largest > w.limit / 3);
		/* The longest pause between two probes. */
		w.taken = w.refused = 0;
		send_parts(&w, 3000);
		assert_in_range(w.refused, 1, w.taken / 200);
	}
}

static void test_without_a_limit_parts_have_the_whole_size(void **state)
{
	struct world w = begin(SIZE_MAX);

	(void)state;
	send_parts(&w, 50);
	assert_int_equal(w.taken, 50 * MAX);
}

static void test_a_limit_that_rises_is_noticed(void **state)
{
	struct world w = begin(3 * KIB);

	(void)state;
	send_parts(&w, 5000);
	w.limit = SIZE_MAX;
	send_parts(&w, 512 + 10);
	assert_int_equal(w.size.bytes, MAX);
}

static void test_one_part_that_is_refused_is_forgotten_soon(void **state)
{
	struct world w = begin(SIZE_MAX);

	(void)state;
	for (int i = 0; i < 10; i++) {
		w.limit = MAX - 1;
		send_part(&w, MAX, false);
		assert_int_equal(w.size.bytes, MAX / 2);
		w.limit = SIZE_MAX;
		send_parts(&w, 4 + 1);
		assert_int_equal(w.size.bytes, MAX);
	}
}

/* Parts that were sent together before an answer came. */
static void test_parts_that_are_refused_together_halve_the_size_once(void **state)
{
	struct otlp_size size;

	(void)state;
	otlp_size_begin(&size, MAX);
	for (int i = 0; i < 4; i++) {
		const struct otlp_part part = { .records = 100, .bytes = MAX };

		otlp_size_answered(&size, &part, true, false);
	}
	assert_int_equal(size.bytes, MAX / 2);
}

static void test_one_probe_is_under_way(void **state)
{
	struct world w = begin(600 * KIB);
	struct otlp_part probe = { .records = 100 }, other = { .records = 100 };

	(void)state;
	send_parts(&w, 1 + 4);
	assert_int_equal(otlp_size_limit(&w.size, &probe), MAX);
	probe.bytes = MAX;
	otlp_size_sent(&w.size, &probe);
	assert_int_equal(otlp_size_limit(&w.size, &other), MAX / 2);
	/* It was neither taken nor refused: so the next part is a probe. */
	otlp_size_answered(&w.size, &probe, false, false);
	assert_int_equal(otlp_size_limit(&w.size, &other), MAX);
}

/* Neither shows anything of larger parts. */
static void test_a_small_part_and_a_single_record_are_no_probes(void **state)
{
	struct world w = begin(600 * KIB);
	struct otlp_part small = { .records = 100, .bytes = 100 }, single = { .records = 1, .bytes = MAX };

	(void)state;
	send_parts(&w, 1 + 4);
	otlp_size_sent(&w.size, &small);
	otlp_size_answered(&w.size, &small, false, true);
	otlp_size_sent(&w.size, &single);
	otlp_size_answered(&w.size, &single, false, true);
	assert_false(small.probe || single.probe);
	assert_int_equal(w.size.bytes, MAX / 2);
	assert_int_equal(otlp_size_limit(&w.size, &small), MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_limit_costs_few_bytes),
		cmocka_unit_test(test_without_a_limit_parts_have_the_whole_size),
		cmocka_unit_test(test_a_limit_that_rises_is_noticed),
		cmocka_unit_test(test_one_part_that_is_refused_is_forgotten_soon),
		cmocka_unit_test(test_parts_that_are_refused_together_halve_the_size_once),
		cmocka_unit_test(test_one_probe_is_under_way),
		cmocka_unit_test(test_a_small_part_and_a_single_record_are_no_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
