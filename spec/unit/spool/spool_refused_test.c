/* Rows that the outbox refuses, because other threads submitted events after the sender had asked for room. */
#define _GNU_SOURCE

#include "spool_file.h"
#include "spool_fixture.h"

#include "spool/spool.h"

#define ROWS 3

/* Global, because the functions of struct spool_codec have no context. */
static struct outbox *crowded; /* the outbox that the next parse submits to; NULL: none */
static unsigned crowd;         /* number of events that it submits */

static void *crowding_parse(evrec_str text, bool *important)
{
	if (crowded != NULL) {
		for (unsigned i = 1; i <= crowd; i++) {
			assert_true(fake_write_submit(crowded, 100 + i, 1));
		}
		crowded = NULL;
	}
	return fake_write_parse(text, important);
}

static void open_crowding(struct sender_fixture *f, const char *path, size_t max_pending)
{
	const evrec_limits limits = limits_without_age(max_pending);
	struct spool_codec codec = fake_write_codec;

	codec.parse = crowding_parse;
	sender_fixture_open_limited(f, true, evrec_clock_real(), spooler_new(str_from(path), SPOOL_AT_END, &codec),
	                            &limits);
}

/* Writes rows of events that were never sent. */
static void spool_rows(const char *path)
{
	struct spool *spool = spool_new(str_from(spool_file_make_folder(path)));

	assert_true(spool_open(spool, SPOOL_MODE_LAST, NULL));
	spool_file_put_unsent(spool, ROWS);
	spool_free(spool);
}

/* None, one, two or all three rows are refused; each is written once by the same process all the same. */
static void test_refused_rows_are_restored_later(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	for (crowd = ROWS; crowd <= 2 * ROWS; crowd++) {
		spool_rows(path);
		open_crowding(&f, path, 2 * ROWS);
		crowded = f.ob;
		f.protocol->silent = true;
		sender_step(f.sender);
		assert_null(crowded);
		assert_int_equal(sender_fixture_stats(&f).restored, 2 * ROWS - crowd);
		assert_false(outbox_empty(f.ob));
		f.protocol->silent = false;
		spool_fixture_drain(&f);
		assert_int_equal(sender_fixture_stats(&f).restored, ROWS);
		assert_int_equal(sender_fixture_stats(&f).created, ROWS + crowd);
		for (unsigned i = 1; i <= ROWS; i++) {
			assert_int_equal(f.protocol->sent_by_id[i], 1);
		}
		spool_fixture_check_silent(&f);
		spool_fixture_end(&f, 0, 0);
		assert_int_equal(spool_fixture_count_rows(path), 0);
	}
}

static bool count_maybe_received(void *ctx, const struct spool_row *row)
{
	*(unsigned *)ctx += row->maybe_received;
	return true;
}

/* A refused row was not sent: a conflict with its name would be with another client's event. */
static void test_refused_row_is_not_marked_as_sent(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	unsigned maybe_received = 0;
	struct spool *spool;
	struct sender_fixture f;

	spool_rows(path);
	open_crowding(&f, path, 2 * ROWS);
	crowded = f.ob;
	crowd = 2 * ROWS - 1;
	f.protocol->silent = true;
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).restored, 1);
	spool_fixture_end(&f, 1 + crowd, 0);
	spool = spool_new(str_from(spool_file_in(path)));
	assert_true(spool_open(spool, SPOOL_MODE_LAST, NULL));
	/* The protocol got the restored and the submitted writes, and answered none of them. */
	assert_true(spool_read(spool, 0, INT64_MAX, ROWS, count_maybe_received, &maybe_received, NULL));
	assert_int_equal(maybe_received, 1);
	spool_free(spool);
}

static bool no_memory; /* the next allocation fails */
static unsigned refusals;

static void *limited_realloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
		return NULL;
	}
	if (__atomic_exchange_n(&no_memory, false, __ATOMIC_SEQ_CST)) {
		__atomic_add_fetch(&refusals, 1, __ATOMIC_SEQ_CST);
		return NULL;
	}
	return realloc(block, size);
}

/* Four times, one allocation fails after the last row was read. */
static void *last_parse(evrec_str text, bool *important)
{
	static unsigned rows;
	void *item = fake_write_parse(text, important);

	rows++;
	__atomic_store_n(&no_memory, rows % ROWS == 0 && rows <= 4 * ROWS, __ATOMIC_SEQ_CST);
	return item;
}

/* No write is pending whose answer would wake the thread. */
static void test_thread_wakes_for_a_row_refused_for_memory(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool_codec codec = fake_write_codec;
	int64_t deadline = unit_mono() + SOON;
	evrec_clock *clock;
	struct sender_fixture f;

	codec.parse = last_parse;
	spool_rows(path);
	evrec_set_allocator(limited_realloc, NULL);
	clock = evrec_clock_fake(T0);
	sender_fixture_open_spooled(&f, false, clock, spooler_new(str_from(path), SPOOL_AT_END, &codec));
	sender_begin(f.sender);
	while (sender_fixture_stats(&f).created < ROWS) {
		assert_true(unit_mono() < deadline);
		evrec_clock_set(clock, evrec_clock_now(clock) + EVREC_SECOND);
		usleep(1000);
	}
	assert_int_equal(__atomic_load_n(&refusals, __ATOMIC_SEQ_CST), 4);
	spool_fixture_end(&f, 0, 0);
	evrec_clock_release(clock);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_refused_rows_are_restored_later),
		SPOOL_TEST(test_refused_row_is_not_marked_as_sent),
		SPOOL_TEST(test_thread_wakes_for_a_row_refused_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
