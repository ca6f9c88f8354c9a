#include "deliver/sender_inner.h"

#include <stdlib.h>

#define EXIT_MAX (EVREC_SECOND * 9 / 5)

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static bool threads_run(void)
{
	for (const struct sender *s = senders.head; s != NULL; s = s->next) {
		if (atomic_load(&s->drive) == DRIVE_THREAD && (s->released || !s->finished)) {
			return true;
		}
	}
	return false;
}

static bool threads_on_disk(void)
{
	for (const struct sender *s = senders.head; s != NULL; s = s->next) {
		if (atomic_load(&s->on_disk)) {
			return true;
		}
	}
	return false;
}

static void wait_for_threads(int64_t deadline)
{
	while (threads_run() && (senders_wait(deadline) || (threads_on_disk() && senders_wait_for_disk()))) {
	}
}

/* After all that it was given time for. */
static void end_one(struct sender *s)
{
	if (atomic_load(&s->drive) == DRIVE_STEPS) {
		if (!atomic_flag_test_and_set(&s->driven)) {
			sender_spool_rest(s);
			outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
		}
	} else if (!s->released) {
		if (s->finished) {
			sender_join_thread(s);
		}
		outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
	}
}

static void end_all(void)
{
	int64_t deadline = sender_real_now() + EXIT_MAX;

	(void)pthread_mutex_lock(&senders.lock);
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (!s->finished) {
			sender_end(s);
		}
	}
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (atomic_load(&s->drive) == DRIVE_STEPS) {
			sender_step_until(s, deadline);
		}
	}
	wait_for_threads(deadline);
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (!s->finished) {
			sender_stop(s);
		}
	}
	wait_for_threads(deadline + LETTING_GO_MAX);
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		end_one(s);
	}
	(void)pthread_mutex_unlock(&senders.lock);
}

static void register_it(void)
{
	transport_global_init();
	(void)atexit(end_all);
}

void senders_watch_exit(void)
{
	(void)pthread_once(&exit_once, register_it);
}
