#include "deliver/sender_inner.h"

#include "base/clock.h"

#include <signal.h>
#include <time.h>

#define FAKE_CLOCK_LOOK (EVREC_SECOND / 50) /* a fake clock moves without notice */
#define IDLE_MAX (3600 * EVREC_SECOND)
#define PAUSE_AFTER 4
#define PAUSE_MAX (3 * EVREC_SECOND)

int64_t sender_real_now(void)
{
	return clock_monotonic(evrec_clock_real());
}

bool sender_has_given_up(const struct sender *s)
{
	return atomic_load(&s->stop) || (atomic_load(&s->ending) && sender_real_now() >= atomic_load(&s->give_up));
}

static bool is_paused(const struct sender *s)
{
	return s->pauses != 0 && !atomic_load(&s->hurries);
}

static unsigned may_be_in_flight(const struct sender *s, int64_t now)
{
	if (!is_paused(s)) {
		return s->max_in_flight;
	}
	return now >= s->pause_until ? 1 : 0;
}

/* How long the transport may wait, `max` at most; at `expiry` something is to be dropped. */
static int64_t waiting_time(const struct sender *s, int64_t now, int64_t expiry, int64_t max)
{
	int64_t due = outbox_next_due(s->outbox, now);

	/* Ending, and the last one was answered while it was sent: nothing would end the wait. */
	if (max <= 0 || (atomic_load(&s->ending) && outbox_empty(s->outbox))) {
		return 0;
	}
	if (max > IDLE_MAX) {
		max = IDLE_MAX;
	}
	if (s->in_flight >= s->max_in_flight || (is_paused(s) && s->in_flight != 0)) {
		due = INT64_MAX;
	} else if (is_paused(s) && due < s->pause_until) {
		due = s->pause_until;
	}
	if (expiry < due) {
		due = expiry;
	}
	if (due == INT64_MAX) {
		return max;
	}
	if (due <= now) {
		return 0;
	}
	due = evrec_clock_is_fake(s->clock) ? FAKE_CLOCK_LOOK : time_since(due, now);
	return due < max ? due : max;
}

static void tend_spool(struct sender *s)
{
	if (s->spooler != NULL) {
		atomic_store(&s->on_disk, true);
		spooler_tend(s->spooler, s->outbox, s->clock);
		atomic_store(&s->on_disk, false);
	}
}

void sender_go_round(struct sender *s, int64_t max_wait, int64_t enough)
{
	int64_t now = clock_monotonic(s->clock);
	int64_t expiry = outbox_expire(s->outbox, now);

	tend_spool(s);
	while (s->in_flight < may_be_in_flight(s, now) && !sender_has_given_up(s)) {
		struct entry *entry = outbox_take(s->outbox, now);

		if (entry == NULL) {
			break;
		}
		s->in_flight++;
		s->transport->ops->send(s->transport, s, entry);
		if (enough != INT64_MAX && sender_real_now() >= enough) {
			break;
		}
	}
	s->transport->ops->step(s->transport, s, waiting_time(s, now, expiry, max_wait));
	tend_spool(s);
}

/* True where an outage has ended. A fake clock's time stands still: no pauses there. */
static bool note_outage(struct sender *s, bool answered, int64_t now)
{
	bool paused = s->pauses != 0;
	int64_t pause;

	if (!s->transport->ops->threaded || evrec_clock_is_fake(s->clock)) {
		return false;
	}
	if (answered) {
		s->unanswered = s->pauses = 0;
		return paused;
	}
	s->unanswered++;
	if (s->unanswered >= PAUSE_AFTER && (!paused || now >= s->pause_until)) {
		s->pauses++;
		pause = retry_delay(s->pauses, 0, retry_random(&s->random));
		s->pause_until = now + (pause < PAUSE_MAX ? pause : PAUSE_MAX);
	}
	return false;
}

void sender_answered(struct sender *s, struct entry *entry, evrec_answer *answer)
{
	int64_t now = clock_monotonic(s->clock);
	/* To a server that does not know us, one request is as good as many. */
	bool is_back = note_outage(s, answer->status != 0 && answer->status != 401, now);

	s->in_flight--;
	if (outbox_answer(s->outbox, entry, answer, now) && s->transport->ops->reload_credentials != NULL) {
		s->transport->ops->reload_credentials(s->transport);
	}
	if (is_back) {
		outbox_hasten(s->outbox);
	}
	memset(answer, 0, sizeof(*answer));
}

struct outbox *sender_outbox(struct sender *s)
{
	return s->outbox;
}

/*
 * Signals that must not reach the embedder's handlers, or kill it, for a pipe, a socket or a file of ours: SIGPIPE, and
 * SIGXFSZ, where a file may grow no further.
 */
struct signals {
	sigset_t ours; /* of the two, what was not pending before */
	sigset_t old;
};

static void block_signals(struct signals *signals)
{
	static const int both[] = { SIGPIPE, SIGXFSZ };
	sigset_t blocked, pending;

	(void)sigemptyset(&signals->ours);
	(void)sigemptyset(&blocked);
	(void)sigpending(&pending);
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		(void)sigaddset(&blocked, both[i]);
		if (sigismember(&pending, both[i]) != 1) {
			(void)sigaddset(&signals->ours, both[i]);
		}
	}
	(void)pthread_sigmask(SIG_BLOCK, &blocked, &signals->old);
}

static void unblock_signals(const struct signals *signals)
{
	const struct timespec at_once = { 0, 0 };

	while (sigtimedwait(&signals->ours, NULL, &at_once) > 0) {
	}
	(void)pthread_sigmask(SIG_SETMASK, &signals->old, NULL);
}

void sender_spool_rest(struct sender *s)
{
	struct signals signals;

	if (s->spooler != NULL) {
		block_signals(&signals);
		spooler_rest(s->spooler, s->outbox, s->clock);
		unblock_signals(&signals);
	}
}

static void drive(struct sender *s, int64_t deadline, int64_t enough)
{
	bool threaded = s->transport->ops->threaded;
	struct signals signals;
	int64_t left;

	if (atomic_flag_test_and_set(&s->driven)) {
		return;
	}
	if (threaded) {
		block_signals(&signals);
	}
	do {
		left = outbox_empty(s->outbox) ? 0 : deadline - sender_real_now();
		sender_go_round(s, left, enough);
	} while (left > 0);
	if (threaded) {
		unblock_signals(&signals);
	}
	atomic_flag_clear(&s->driven);
}

void sender_step_until(struct sender *s, int64_t deadline)
{
	drive(s, deadline, INT64_MAX);
}

void sender_step_once(struct sender *s, int64_t enough)
{
	drive(s, 0, enough);
}
