/*
 * A thread that was taken for one that hangs comes back that very moment, with a spool to see to. For this the test has
 * a pthread_mutex_unlock of its own.
 */
#define _GNU_SOURCE

#include "folder.h"
#include "script.h"

#include "deliver/sender_inner.h"

#include <dlfcn.h>

static pthread_t joiner;
static struct fixture f;
static atomic_bool joining, came_back;
static atomic_uint frozen;

/* False: it is still at work. */
static bool is_done(void)
{
	bool done;

	(void)pthread_mutex_lock(&senders.lock);
	done = f.sender->finished;
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
	    atomic_load(&f.sender->stop) && !atomic_exchange(&came_back, true)) {
		set(&f, &f.script->hang, false);
		while (atomic_load(&frozen) == 0 && !is_done()) {
			usleep(1000);
		}
	}
	return result;
}

static bool freeze(const void *item, struct buf *out)
{
	atomic_fetch_add(&frozen, 1);
	return item_freeze(item, out);
}

static void test_comes_back_when_given_up(void **state)
{
	const struct spool_codec codec = { freeze, item_thaw };

	open_with(&f, false, evrec_clock_real(), spooler_new(str_from(in_folder(*state, "spool")), &codec));
	f.script->hang = true;
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	wait_sent(&f, 1);
	joiner = pthread_self();
	atomic_store(&joining, true);
	assert_false(sender_join(f.sender, 0));
	atomic_store(&joining, false);
	assert_true(atomic_load(&came_back));
	/* Dropped, and so not spooled as well. */
	assert_int_equal(atomic_load(&frozen), 0);
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_CLOSED], 20);
	sender_release(f.sender);
	wait_freed(&f);
	assert_int_equal(items_alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_comes_back_when_given_up, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
