#include "deliver/sender_inner.h"

#include <stdlib.h>

#define EXIT_MAX (EVREC_SECOND * 9 / 5)
#define LAST_TRY (EVREC_SECOND / 5) /* at the end of that, for what still backs off */
#define FLUSH_LOOK (EVREC_SECOND / 100)

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

static void wait_for_threads_to_let_go(void)
{
	for (int turn = 0; turn < LETTING_GO_TURNS && threads_run(); turn++) {
		wait_for_threads(sender_real_now() + LETTING_GO_MAX / LETTING_GO_TURNS);
	}
}

/*
 * There is something to write, and a server that was there when last heard of: it may take at the next try what it
 * refused. One that is gone costs a process no time.
 */
static bool is_getting_on(struct sender *s)
{
	struct outbox_stats stats;

	if (s->finished || outbox_empty(s->outbox)) {
		return false;
	}
	outbox_get_stats(s->outbox, &stats);
	return stats.in_flight != 0 || atomic_load(&s->unanswered) == 0;
}

static bool some_get_on(void)
{
	bool some = false;

	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (atomic_load(&s->drive) == DRIVE_STEPS) {
			sender_step_until(s, 0);
		}
		some = is_getting_on(s) || some;
	}
	return some;
}

/* With all the tries that a flush would make. */
static void flush_all(int64_t deadline)
{
	while (some_get_on() && sender_real_now() < deadline) {
		(void)senders_wait(sender_real_now() + FLUSH_LOOK);
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
	flush_all(deadline - LAST_TRY);
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
	wait_for_threads_to_let_go();
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
