/*
 * A sender's thread hangs until sender_join gives it up, and returns at that very moment with a spool to write. The test
 * wraps pthread_mutex_unlock to hit that moment; the wrapper's state is global for this reason.
 */
#define _GNU_SOURCE

#include "sender_fixture.h"
#include "tmpdir.h"

#include "sender/sender_inner.h"

#include <dlfcn.h>

static pthread_t joiner;
static struct sender_fixture f;
static atomic_bool joining, has_returned;
static atomic_uint serialized;

/* Whether the sender's thread has finished. */
static bool is_done(void)
{
	bool done;

	(void)pthread_mutex_lock(&senders.lock);
	done = sender_has_reached(f.sender, SENDER_FINISHED);
	(void)pthread_mutex_unlock(&senders.lock);
	return done;
}

int pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int (*real)(pthread_mutex_t *);
	int result;

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	result = real(lock);
	if (lock == &senders.lock && atomic_load(&joining) && pthread_equal(pthread_self(), joiner) &&
	    sender_has_reached(f.sender, SENDER_STOPPING) && !atomic_exchange(&has_returned, true)) {
		sender_fixture_set(&f, &f.protocol->hangs, false);
		while (atomic_load(&serialized) == 0 && !is_done()) {
			usleep(1000);
		}
	}
	return result;
}

static bool serialize(const void *item, struct buf *out)
{
	atomic_fetch_add(&serialized, 1);
	return fake_write_serialize(item, out);
}

static void test_thread_that_returns_late_spools_nothing(void **state)
{
	struct spool_codec codec = fake_write_codec;

	codec.serialize = serialize;
	sender_fixture_open_spooled(&f, false, evrec_clock_real(),
	                            spooler_new(str_from(tmpdir_path(*state, "spool")), SPOOL_AT_END, &codec));
	f.protocol->hangs = true;
	for (unsigned i = 1; i <= 20; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	sender_fixture_wait_sent(&f, 1);
	joiner = pthread_self();
	atomic_store(&joining, true);
	assert_false(sender_join(f.sender, 0));
	atomic_store(&joining, false);
	assert_true(atomic_load(&has_returned));
	/* The events were dropped, so none is spooled too. */
	assert_int_equal(atomic_load(&serialized), 0);
	assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 20);
	sender_release(f.sender);
	sender_fixture_wait_freed(&f);
	assert_int_equal(fake_writes.alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_thread_that_returns_late_spools_nothing, tmpdir_setup,
		                                tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
