/* A state that is in use for long, as an embedder's function works: the driver does not wait for it again and again. */
#define _GNU_SOURCE

#include "checked_outbox.h"
#include "correlations.h"
#include "tmpdir.h"

#include "recorder/kept_state.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS (EVREC_SECOND / 1000)

static unsigned pauses;

int nanosleep(const struct timespec *wait, struct timespec *left)
{
	pauses++;
	return (int)syscall(SYS_nanosleep, wait, left);
}

struct fixture {
	struct outbox *ob;
	evrec_correlator *correlator;
	struct state_file *file;
	bool is_long; /* the embedder's function works long */
};

static void wake(void *ctx)
{
	(void)ctx;
}

/* Rounds of the driver, while the embedder's function works. */
static void drive(struct fixture *f)
{
	unsigned first;

	state_file_step(f->file, f->ob, 0, false);
	first = pauses;
	assert_int_equal(state_file_next_due(f->file), 50 * MS);
	for (int64_t now = 1; now <= 20; now++) {
		state_file_step(f->file, f->ob, now * 50 * MS, false);
		assert_int_equal(state_file_next_due(f->file), (now + 1) * 50 * MS);
	}
	assert_int_equal(pauses, first);
	/* The end of the process inside the function. */
	state_file_save(f->file, f->ob);
	assert_in_range(pauses - first, 1, 20);
}

static bool choose_key(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	struct fixture *f = ctx;

	(void)event;
	(void)aggregate_key;
	(void)local_key;
	if (f->is_long) {
		drive(f);
	}
	return false;
}

static void observe(struct fixture *f)
{
	const evrec_fields event = pod_event("a", "R", "m", T0);
	struct keys keys = { 0 };
	struct observed o;

	assert_true(keys_make(&keys, &event));
	assert_int_equal(correlator_observe(f->correlator, &event, &keys, T0, NULL, &o), 0);
	keys_free(&keys);
}

static void test_tried_once_every_50_ms(void **state)
{
	const evrec_str path = str_from(tmpdir_path(*state, "state"));
	evrec_correlator_options options;
	struct fixture f = { 0 };

	evrec_correlator_options_init(&options);
	options.key_func = choose_key;
	options.ctx = &f;
	f.correlator = evrec_correlator_new(&options, NULL);
	f.ob = checked_outbox(10);
	f.file = kept_state_new(path, kept_state_open(path, str_from("")), &(struct kept){ f.correlator, NULL }, T0,
	                        f.ob, NULL);
	assert_non_null(f.file);
	state_file_on_change(f.file, wake, NULL);
	observe(&f);
	f.is_long = true;
	observe(&f);
	/* It is written, once the function has returned. */
	state_file_step(f.file, f.ob, 2 * EVREC_SECOND, false);
	state_file_step(f.file, f.ob, 4 * EVREC_SECOND, false);
	assert_int_equal(state_file_next_due(f.file), INT64_MAX);
	state_file_free(f.file);
	checked_outbox_free(f.ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_tried_once_every_50_ms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
