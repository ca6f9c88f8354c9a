#define _GNU_SOURCE /* pthread_setname_np, strerror_r */

#include "deliver/sender_inner.h"

#include <signal.h>
#include <stdio.h>

#define RELEASED_MAX (30 * EVREC_SECOND)

static void dispose(struct sender *s)
{
	s->transport->ops->free(s->transport);
	spooler_free(s->spooler);
	outbox_free(s->outbox);
	evrec_clock_release(s->clock);
}

/* ---- the thread ---- */

/* After the last round. Under the lock, as what is dropped for a thread that hangs is not to be spooled as well. */
static void rest(struct sender *s)
{
	(void)pthread_mutex_lock(&senders.lock);
	atomic_store(&s->on_disk, true);
	(void)pthread_mutex_unlock(&senders.lock);
	sender_spool_rest(s);
}

static void *run(void *ctx)
{
	struct sender *s = ctx;
	bool released;

	(void)pthread_setname_np(pthread_self(), "evrec");
	while (!sender_has_given_up(s)) {
		bool ending = atomic_load(&s->ending);

		if (ending && outbox_empty(s->outbox)) {
			break;
		}
		sender_go_round(s, ending ? atomic_load(&s->give_up) - sender_real_now() : INT64_MAX, INT64_MAX);
	}
	if (s->spooler != NULL) {
		rest(s);
	}
	(void)pthread_mutex_lock(&senders.lock);
	atomic_store(&s->on_disk, false);
	released = s->released;
	s->finished = true;
	if (released) {
		/* Freed while still listed: exit() waits until libcurl is done with. */
		(void)pthread_mutex_unlock(&senders.lock);
		dispose(s);
		(void)pthread_mutex_lock(&senders.lock);
		senders_remove(s);
	}
	(void)pthread_cond_broadcast(&senders.changed);
	(void)pthread_mutex_unlock(&senders.lock);
	if (released) {
		mem_free(s);
	}
	return NULL;
}

void sender_join_thread(struct sender *s)
{
	if (!s->joined) {
		s->joined = true;
		(void)pthread_join(s->thread, NULL);
	}
}

static void poke(struct sender *s)
{
	if (atomic_load(&s->drive) == DRIVE_THREAD && s->transport->ops->wake != NULL) {
		s->transport->ops->wake(s->transport);
	}
}

void sender_stop(struct sender *s)
{
	atomic_store(&s->stop, true);
	poke(s);
}

/* ---- life ---- */

static void start(struct sender *s)
{
	char message[160], text[64];
	sigset_t all, old;
	int error = 0;

	senders_watch_exit();
	(void)pthread_mutex_lock(&senders.lock);
	if (atomic_load(&s->drive) == DRIVE_NONE) {
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &old);
		error = pthread_create(&s->thread, NULL, run, s);
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
		atomic_store(&s->drive, error == 0 ? DRIVE_THREAD : DRIVE_STEPS);
		senders_add(s);
	}
	(void)pthread_mutex_unlock(&senders.lock);
	if (error != 0) {
		(void)snprintf(message, sizeof(message), "no thread could be started (%s): evrec writes from poll()",
		               strerror_r(error, text, sizeof(text)));
		outbox_report(s->outbox, "thread", message);
	}
}

/* exit() carries on what has no thread too, as long as that calls nothing of the embedder's. */
static void list_for_exit(struct sender *s)
{
	if (!s->transport->ops->threaded || s->listed) {
		return;
	}
	senders_watch_exit();
	(void)pthread_mutex_lock(&senders.lock);
	senders_add(s);
	(void)pthread_mutex_unlock(&senders.lock);
}

static void wake(void *ctx)
{
	struct sender *s = ctx;

	if (sender_is_parents(s)) {
		return;
	}
	switch (atomic_load(&s->drive)) {
	case DRIVE_NONE:
		start(s);
		break;
	case DRIVE_STEPS:
		list_for_exit(s);
		break;
	case DRIVE_THREAD:
		break;
	}
	poke(s);
}

struct sender *sender_new(struct outbox *ob, struct transport *t, const struct sender_options *options)
{
	struct sender *s = mem_zalloc(sizeof(*s));

	if (s == NULL) {
		t->ops->free(t);
		spooler_free(options->spooler);
		outbox_free(ob);
		return NULL;
	}
	senders_init();
	s->outbox = ob;
	s->transport = t;
	s->clock = evrec_clock_retain(options->clock);
	s->max_in_flight = options->max_in_flight;
	s->generation = sender_fork_generation();
	s->random = (uint64_t)sender_real_now() ^ (uintptr_t)s;
	atomic_init(&s->drive, options->threadless || !t->ops->threaded ? DRIVE_STEPS : DRIVE_NONE);
	atomic_init(&s->give_up, INT64_MAX);
	atomic_flag_clear(&s->driven);
	outbox_on_work(ob, wake, s);
	s->spooler = options->spooler;
	if (s->spooler != NULL) {
		outbox_expect(ob, true);
	}
	return s;
}

void sender_begin(struct sender *s)
{
	if (s->spooler != NULL && atomic_load(&s->drive) != DRIVE_THREAD && !atomic_load(&s->ending)) {
		wake(s);
	}
}

bool sender_needs_step(const struct sender *s)
{
	return atomic_load(&s->drive) == DRIVE_STEPS;
}

/* All that were released without a thread while they had something to send; linked by `next`. */
static struct sender *take_orphans(void)
{
	struct sender *taken = NULL, *next;

	(void)pthread_mutex_lock(&senders.lock);
	for (struct sender *s = senders.head; s != NULL; s = next) {
		next = s->next;
		if (s->released && atomic_load(&s->drive) == DRIVE_STEPS) {
			senders_remove(s);
			s->next = taken;
			taken = s;
		}
	}
	(void)pthread_mutex_unlock(&senders.lock);
	return taken;
}

/* Whoever else polls carries them on, or exit(). Without the lock, which a recording call may want. */
static void step_orphans(void)
{
	struct sender *s, *next;

	for (s = take_orphans(); s != NULL; s = next) {
		next = s->next;
		sender_step_until(s, 0);
		if (outbox_empty(s->outbox) || sender_has_given_up(s)) {
			sender_spool_rest(s);
			dispose(s);
			mem_free(s);
			continue;
		}
		(void)pthread_mutex_lock(&senders.lock);
		senders_add(s);
		(void)pthread_mutex_unlock(&senders.lock);
	}
}

void sender_step_by(struct sender *s, int64_t deadline)
{
	if (sender_is_parents(s) || !sender_needs_step(s) || atomic_load(&s->stop)) {
		return;
	}
	sender_step_once(s, deadline);
	step_orphans();
}

void sender_step(struct sender *s)
{
	sender_step_by(s, INT64_MAX);
}

void sender_end(struct sender *s)
{
	if (!sender_is_parents(s)) {
		outbox_close(s->outbox);
		atomic_store(&s->hurries, true);
		atomic_store(&s->ending, true);
		poke(s);
	}
}

bool sender_has_ended(const struct sender *s)
{
	bool ended;

	(void)pthread_mutex_lock(&senders.lock);
	ended = atomic_load(&s->drive) != DRIVE_THREAD || s->finished;
	(void)pthread_mutex_unlock(&senders.lock);
	return ended;
}

static void wait_for_end(const struct sender *s, int64_t deadline)
{
	while (!s->finished && (senders_wait(deadline) || (atomic_load(&s->on_disk) && senders_wait_for_disk()))) {
	}
}

enum joined { JOINED, JOINED_LATE, HANGS };

/* HANGS: in a call that nothing ends, such as a write to a disk that is gone; all that is pending was dropped. */
static enum joined join_thread(struct sender *s, int64_t deadline)
{
	enum joined joined = JOINED;

	(void)pthread_mutex_lock(&senders.lock);
	wait_for_end(s, deadline);
	if (!s->finished) {
		joined = JOINED_LATE;
		sender_stop(s);
		for (int turn = 0; turn < LETTING_GO_TURNS && !s->finished; turn++) {
			wait_for_end(s, sender_real_now() + LETTING_GO_MAX / LETTING_GO_TURNS);
		}
	}
	if (s->finished) {
		sender_join_thread(s);
	} else {
		/* Before the lock is given back: from then on it may come to rest, and would spool what is dropped here. */
		joined = HANGS;
		outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
	}
	(void)pthread_mutex_unlock(&senders.lock);
	return joined;
}

bool sender_join(struct sender *s, int64_t deadline)
{
	enum joined joined = JOINED;
	struct outbox_stats stats;

	if (sender_is_parents(s)) {
		return false;
	}
	atomic_store(&s->give_up, deadline);
	sender_end(s);
	if (atomic_load(&s->drive) == DRIVE_THREAD) {
		joined = join_thread(s, deadline);
	} else if (!atomic_load(&s->stop)) {
		sender_step_until(s, deadline);
	}
	if (joined == HANGS) {
		return false;
	}
	atomic_store(&s->stop, true);
	if (atomic_load(&s->drive) != DRIVE_THREAD) {
		sender_spool_rest(s);
	}
	outbox_get_stats(s->outbox, &stats);
	outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
	outbox_cut_off(s->outbox);
	return joined == JOINED && stats.pending == 0 && stats.spooled == 0;
}

/* Without its owner: by its thread, or by the steps that exit() and others' polls make. */
static bool can_go_on(const struct sender *s)
{
	if (atomic_load(&s->drive) == DRIVE_THREAD) {
		return !s->finished;
	}
	return s->listed && !atomic_load(&s->stop) && !outbox_empty(s->outbox);
}

void sender_release(struct sender *s)
{
	bool thread, going_on;

	if (sender_is_parents(s)) {
		return;
	}
	(void)pthread_mutex_lock(&senders.lock);
	thread = atomic_load(&s->drive) == DRIVE_THREAD;
	going_on = can_go_on(s);
	if (going_on) {
		s->released = true;
		if (atomic_load(&s->give_up) == INT64_MAX) {
			atomic_store(&s->give_up, sender_real_now() + RELEASED_MAX);
		}
		if (thread) {
			(void)pthread_detach(s->thread);
		}
		/* With all the tries that there is time for. */
		atomic_store(&s->ending, true);
		poke(s);
	} else {
		if (thread) {
			sender_join_thread(s);
		}
		senders_remove(s);
	}
	(void)pthread_mutex_unlock(&senders.lock);
	if (!going_on) {
		dispose(s);
		mem_free(s);
	}
}
