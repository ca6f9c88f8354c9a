#define _GNU_SOURCE /* pthread_setname_np, strerror_r */

#include "sender/sender_inner.h"

#include <signal.h>
#include <stdio.h>

/*
 * Sets `on_disk` with the lock held: under that lock sender_join drops the entries of a hanging thread, which must not
 * be spooled as well.
 */
static void save_kept(struct sender *s)
{
	(void)pthread_mutex_lock(&senders.lock);
	atomic_store(&s->on_disk, true);
	(void)pthread_mutex_unlock(&senders.lock);
	sender_save_kept(s);
}

/*
 * Frees the parts of a released sender before it is unlisted, so that exit() still waits for libcurl. Tells its losses
 * without the lock: standard error may be a file on a disk that hangs.
 */
static void finish(struct sender *s)
{
	bool released, has_before = false;
	pthread_t before;

	(void)pthread_mutex_lock(&senders.lock);
	atomic_store(&s->on_disk, false);
	released = s->released;
	sender_enter(s, SENDER_FINISHED);
	if (released) {
		(void)pthread_mutex_unlock(&senders.lock);
		sender_tell_losses(s);
		sender_free_parts(s);
		(void)pthread_mutex_lock(&senders.lock);
		senders_remove(s);
		has_before = senders_leave(&before);
	}
	(void)pthread_cond_broadcast(&senders.changed);
	(void)pthread_mutex_unlock(&senders.lock);
	if (released) {
		mem_free(s);
	}
	if (has_before) {
		(void)pthread_join(before, NULL);
	}
}

static void *run(void *ctx)
{
	struct sender *s = ctx;
	const struct protocol_ops *ops = s->protocol->ops;

	(void)pthread_setname_np(pthread_self(), "evrec");
	while (!sender_has_given_up(s)) {
		int64_t max_wait = INT64_MAX;

		if (sender_has_reached(s, SENDER_DRAINING)) {
			if (outbox_empty(s->outbox)) {
				break;
			}
			max_wait = atomic_load(&s->give_up) - sender_real_now();
		}
		sender_go_round(s, max_wait, INT64_MAX);
	}
	sender_save_state(s);
	if (s->spooler != NULL) {
		save_kept(s);
	}
	finish(s);
	if (ops->end_thread != NULL) {
		ops->end_thread();
	}
	return NULL;
}

int sender_create_thread(pthread_t *thread, void *(*function)(void *ctx), void *ctx)
{
	sigset_t all, old;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(thread, NULL, function, ctx);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

void sender_start_thread(struct sender *s)
{
	char message[160], text[64];
	int error = 0;

	senders_watch_exit(s->protocol);
	(void)pthread_mutex_lock(&senders.lock);
	if (atomic_load(&s->drive) == DRIVE_NONE) {
		error = sender_create_thread(&s->thread, run, s);
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
