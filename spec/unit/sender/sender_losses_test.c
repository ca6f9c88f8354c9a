/* A line about losses that standard error is slow to take: a file on a disk that hangs makes its writer wait. */
#include "sender_fixture.h"

#include "base/nonblocking.h"
#include "sender/sender_inner.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool writing, may_go_on; /* under `lock` */
static char written[EVREC_LINE_SIZE];

/* Replaces the library's function: waits until the test lets it go on. */
ssize_t nonblocking_write(int fd, const char *data, size_t len)
{
	(void)fd;
	pthread_mutex_lock(&lock);
	writing = true;
	memcpy(written, data, len);
	pthread_cond_broadcast(&changed);
	while (!may_go_on) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return (ssize_t)len;
}

static void test_others_go_on_while_a_thread_tells(void **state)
{
	struct sender_fixture f;
	int locked;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	f.sender->loud = true;
	sender_fixture_set_status(&f, 422);
	fake_write_submit(f.ob, 1, 1);
	sender_release(f.sender);
	pthread_mutex_lock(&lock);
	while (!writing) {
		pthread_cond_wait(&changed, &lock);
	}
	/* The lock that a recording call takes to start a thread. */
	locked = pthread_mutex_trylock(&senders.lock);
	if (locked == 0) {
		pthread_mutex_unlock(&senders.lock);
	}
	may_go_on = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	sender_fixture_wait_freed(&f);
	assert_int_equal(locked, 0);
	assert_non_null(strstr(written, "1 event was not written: 1 rejected"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_go_on_while_a_thread_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
