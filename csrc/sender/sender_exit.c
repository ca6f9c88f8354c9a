#include "base/clock.h"
#include "sender/sender_inner.h"

#include <signal.h>
#include <stdlib.h>

#define EXIT_MAX (2 * EVREC_SECOND)
#define TENTHS 10 /* of the time: the last one is for threads to stop, the one before for writes that back off */
#define LOOK (EVREC_SECOND / 100)

/* How the process ends. */
struct ending_plan {
	int64_t flush_until, end_until; /* CLOCK_MONOTONIC */
	bool by_signal;                 /* the embedder's threads go on meanwhile, and may poll */
};

/* Whether the end waits for the sender. exit() runs on a thread of the embedder, which therefore polls no more. */
static bool is_concerned(const struct sender *s, const struct ending_plan *plan)
{
	return plan->by_signal || s->does_io;
}

static bool is_stepped(const struct sender *s)
{
	return atomic_load(&s->drive) == DRIVE_STEPS;
}

static bool has_thread_at_work(const struct sender *s)
{
	return atomic_load(&s->drive) == DRIVE_THREAD && (s->released || !sender_has_reached(s, SENDER_FINISHED));
}

static bool threads_run(void)
{
	for (const struct sender *s = senders.head; s != NULL; s = s->next) {
		if (has_thread_at_work(s)) {
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
 * Whether there are writes, and the server answered last time: it may accept the next try. If the server is away, the
 * end does not wait, unless creates wait for a listing (the option `resume`).
 */
static bool makes_progress(struct sender *s)
{
	struct outbox_stats stats;

	if (sender_has_reached(s, SENDER_FINISHED) || outbox_empty(s->outbox)) {
		return false;
	}
	outbox_get_stats(s->outbox, &stats);
	return stats.in_flight != 0 || atomic_load(&s->view.unanswered) == 0;
}

/* Steps the sender, unless it needs a poll. */
static void carry_on(struct sender *s)
{
	if (is_stepped(s) && s->does_io) {
		sender_step_until(s, 0);
	}
}

static bool some_get_on(const struct ending_plan *plan)
{
	bool some = senders.away != 0;

	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		carry_on(s);
		some = (is_concerned(s, plan) && makes_progress(s)) || some;
	}
	return some;
}

/* Releases deferred writes, which would be due after the end of the process. */
static void release_deferred(void)
{
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (!sender_has_reached(s, SENDER_FINISHED)) {
			outbox_release_all(s->outbox, clock_monotonic(s->clock));
		}
	}
}

static bool guests_get_on(void)
{
	bool some = false;

	for (struct sender_guest *guest = senders.guests; guest != NULL; guest = guest->next) {
		/* After a signal, a poll that is using the guest will end. */
		some = guest->busy || senders_run_guest(guest) || some;
	}
	return some;
}

/* Lets all senders make the tries that a flush would make. */
static void flush_all(const struct ending_plan *plan)
{
	bool some = true;

	while (some && sender_real_now() < plan->flush_until) {
		some = guests_get_on();
		some = some_get_on(plan) || some;
		if (some) {
			(void)senders_wait(sender_real_now() + LOOK);
		}
	}
}

/* Lets each sender try its waiting writes once more. A sender that needs polls goes on as before. */
static bool some_are_ending(const struct ending_plan *plan)
{
	bool some = senders.away != 0;

	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (!s->does_io) {
			some = (is_concerned(s, plan) && makes_progress(s)) || some;
			continue;
		}
		if (!sender_has_reached(s, SENDER_ENDING)) {
			sender_end(s);
		}
		carry_on(s);
		some = has_thread_at_work(s) || (is_stepped(s) && !outbox_empty(s->outbox)) || some;
	}
	return some;
}

static void try_once_more(const struct ending_plan *plan)
{
	while (some_are_ending(plan) && (sender_real_now() < plan->end_until || threads_on_disk())) {
		(void)senders_wait(sender_real_now() + LOOK);
	}
}

/*
 * Drops or spools the sender's remaining writes, once its time is up. exit() may run inside of a step, which then never
 * ends; after a signal a poll ends its step soon.
 */
static void end_one(struct sender *s, const struct ending_plan *plan)
{
	if (is_stepped(s)) {
		if (sender_end_steps(s, plan->by_signal ? sender_real_now() + LETTING_GO_MAX : 0)) {
			outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
		}
	} else if (!s->released) {
		if (sender_has_reached(s, SENDER_FINISHED)) {
			sender_join_thread(s);
		}
		outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
	}
}

/*
 * If the sender calls functions of the embedder, exit() writes only the state file, and the spool if there is one; and
 * not even that if exit() was called inside of a step of the sender.
 */
static void save_state(struct sender *s)
{
	if (is_stepped(s) && !atomic_flag_test_and_set(&s->stepping)) {
		sender_save_state(s);
		atomic_flag_clear(&s->stepping);
	}
}

/*
 * Whether its thread is past its last round: then the thread prints the losses, and frees the outbox, without the lock.
 */
static bool is_told_by_thread(const struct sender *s)
{
	return s->released && atomic_load(&s->drive) == DRIVE_THREAD && sender_has_reached(s, SENDER_FINISHED);
}

/* With the lock held, which it releases while it waits. */
static void end_all(int64_t timeout, bool by_signal)
{
	int64_t start = sender_real_now();
	struct ending_plan plan = {
		.flush_until = start + timeout / TENTHS * (TENTHS - 2),
		.end_until = start + timeout / TENTHS * (TENTHS - 1),
		.by_signal = by_signal,
	};

	senders.ending = ENDING;
	release_deferred();
	flush_all(&plan);
	try_once_more(&plan);
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (is_concerned(s, &plan) && !sender_has_reached(s, SENDER_FINISHED)) {
			sender_enter(s, SENDER_STOPPING);
		}
	}
	wait_for_threads_to_let_go();
	for (struct sender *s = senders.head; s != NULL; s = s->next) {
		if (is_concerned(s, &plan) || (is_stepped(s) && s->spooler != NULL)) {
			end_one(s, &plan);
		} else {
			save_state(s);
		}
		if (!is_told_by_thread(s)) {
			sender_tell_losses(s);
		}
	}
	for (struct sender_guest *guest = senders.guests; guest != NULL; guest = guest->next) {
		guest->tell(guest->ctx);
	}
	senders.ending = ENDED;
	(void)pthread_cond_broadcast(&senders.changed);
}

/* A signal may come during exit(), and exit() may be called after a signal: the second one waits for the first. */
static void end_once(int64_t timeout, bool by_signal)
{
	(void)pthread_mutex_lock(&senders.lock);
	if (senders.ending == NOT_ENDED) {
		end_all(timeout, by_signal);
	}
	while (senders.ending == ENDING) {
		(void)pthread_cond_wait(&senders.changed, &senders.lock);
	}
}

/*
 * HAProxy's master repeats the SIGUSR1 of a soft stop, and a worker in exit() has no handler any more: it would die of it.
 * Signals that end a process at once still do.
 */
static void block_soft_stop(void)
{
	struct sigaction present;
	sigset_t set;

	if (sigaction(SIGUSR1, NULL, &present) == 0 && present.sa_handler == SIG_DFL) {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGUSR1);
		(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	}
}

/* Registered more than once, it runs once: later runs would come after the exit handlers of libraries. */
static void end_at_exit(void)
{
	block_soft_stop();
	end_once(EXIT_MAX, false);
	senders_join_leaver();
	(void)pthread_mutex_unlock(&senders.lock);
}

void senders_end_for_signal(int64_t timeout)
{
	end_once(timeout, true);
}

void senders_watch_exit(const struct protocol *p)
{
	static atomic_bool watched;
	bool fresh = p != NULL && p->ops->init_library != NULL && p->ops->init_library();

	/* exit() calls handlers in the reverse order, so this one is registered after each library's. */
	if (!atomic_exchange(&watched, true) || fresh) {
		(void)atexit(end_at_exit);
	}
}

void senders_add_guest(struct sender_guest *guest)
{
	senders_watch_exit(NULL);
	(void)pthread_mutex_lock(&senders.lock);
	senders_list_guest(guest);
	(void)pthread_mutex_unlock(&senders.lock);
}
