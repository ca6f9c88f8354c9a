#include "base/clock.h"
#include "base/signals.h"
#include "outbox/retry.h"
#include "sender/sender_inner.h"

#define FAKE_CLOCK_LOOK (EVREC_SECOND / 50) /* a fake clock moves without notice */
#define IDLE_MAX (3600 * EVREC_SECOND)
#define STEP_MIN (EVREC_SECOND / 100) /* between the steps of a sender whose requests are under way */

static int64_t read_clock(struct sender *s)
{
	s->now = clock_monotonic(s->clock);
	return s->now;
}

void sender_publish_throttle(struct sender *s)
{
	const struct throttle *t = &s->throttle;

	atomic_store_explicit(&s->view.window, throttle_window(t, t->paused_until), memory_order_relaxed);
	atomic_store_explicit(&s->view.unanswered, t->unanswered, memory_order_relaxed);
	atomic_store_explicit(&s->view.rate, t->rate, memory_order_relaxed);
	atomic_store_explicit(&s->view.paused_until, t->paused_until, memory_order_relaxed);
	atomic_store_explicit(&s->view.next_slot, t->rate != 0 ? t->next_slot : INT64_MIN, memory_order_relaxed);
	atomic_store_explicit(&s->view.refused, t->refused, memory_order_relaxed);
}

/* When the next request may start: <= now for at once, INT64_MAX if one must end first. At the end no pause holds. */
static int64_t next_start(const struct sender *s)
{
	if (sender_has_reached(s, SENDER_ENDING)) {
		return s->in_flight < s->protocol->max_in_flight ? s->now : INT64_MAX;
	}
	return throttle_next_start(&s->throttle, s->now);
}

/* How long the protocol may wait, up to `max` ns; at `expiry` an entry is to be dropped. */
static int64_t waiting_time(const struct sender *s, int64_t expiry, int64_t max)
{
	int64_t now = s->now, due = outbox_next_due(s->outbox, now), start = next_start(s);

	/* If it is to end, and the last write was answered while it was sent, nothing would end the wait. */
	if (max <= 0 || (sender_has_reached(s, SENDER_DRAINING) && outbox_empty(s->outbox)) ||
	    (s->spooler != NULL && spooler_has_work(s->spooler, s->outbox, now))) {
		return 0;
	}
	if (max > IDLE_MAX) {
		max = IDLE_MAX;
	}
	if (due < start) {
		due = start;
	}
	if (s->held) {
		due = INT64_MAX; /* until the protocol's step, or a write of the state, makes it sendable */
	}
	if (expiry < due) {
		due = expiry;
	}
	if (s->spooler != NULL) {
		int64_t row_due = spooler_next_due(s->spooler, s->outbox, now);

		due = row_due < due ? row_due : due;
	}
	if (s->state != NULL) {
		int64_t state_due = state_file_next_due(s->state);

		due = state_due < due ? state_due : due;
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

/* If the protocol calls the embedder's functions, these need the signals, which are blocked for the spool alone. */
static void step_spool(struct sender *s)
{
	struct signals signals;

	if (s->spooler == NULL) {
		return;
	}
	if (!s->does_io) {
		signals_block(&signals);
	}
	atomic_store(&s->on_disk, true);
	spooler_step(s->spooler, s->outbox, s->clock, atomic_load(&s->drive) == DRIVE_STEPS);
	atomic_store(&s->on_disk, false);
	if (!s->does_io) {
		signals_unblock(&signals);
	}
}

/* Does not set `on_disk`: the end does not wait for the state's disk. */
static void step_state(struct sender *s)
{
	if (s->state != NULL) {
		state_file_step(s->state, s->outbox, s->now, atomic_load(&s->drive) == DRIVE_STEPS);
	}
}

/* Takes up to max_batch entries; returns how many. */
static size_t take_batch(struct sender *s, int64_t now)
{
	size_t n = 0;

	while (n < s->protocol->max_batch && (s->batch[n] = outbox_take(s->outbox, now)) != NULL) {
		n++;
	}
	return n;
}

/* Without batches outbox_take checks it, which takes the lock once less. */
static bool is_due(struct sender *s)
{
	const struct protocol *p = s->protocol;

	return (p->batch_delay == 0 && p->ops->ready == NULL) || outbox_next_due(s->outbox, s->now) <= s->now;
}

static bool is_ready(const struct sender *s)
{
	const struct protocol_ops *ops = s->protocol->ops;

	return ops->ready == NULL || ops->ready(s->protocol);
}

/*
 * False: the batch must not be sent yet, as its names may be missing in the state. At its end the sender does not wait
 * for the state.
 */
static bool state_knows_batch(struct sender *s)
{
	return s->state == NULL ||
	       state_file_write_ahead(s->state, s->outbox, s->now, atomic_load(&s->drive) == DRIVE_STEPS) ||
	       sender_has_reached(s, SENDER_ENDING);
}

static void give_back(struct sender *s, size_t n)
{
	while (n != 0) {
		outbox_untake(s->outbox, s->batch[--n]);
	}
}

static void send_due(struct sender *s, int64_t send_deadline)
{
	s->held = false;
	while (next_start(s) <= s->now && !sender_has_given_up(s)) {
		size_t n;

		if (!is_due(s)) {
			break;
		}
		s->held = !is_ready(s);
		n = s->held ? 0 : take_batch(s, s->now);
		if (n == 0) {
			break;
		}
		if (!state_knows_batch(s)) {
			give_back(s, n);
			s->held = true;
			break;
		}
		s->in_flight++;
		throttle_started(&s->throttle, s->now);
		s->protocol->ops->send(s->protocol, s, s->batch, n);
		if (send_deadline != INT64_MAX && sender_real_now() >= send_deadline) {
			break;
		}
	}
}

void sender_go_round(struct sender *s, int64_t max_wait, int64_t send_deadline)
{
	int64_t expiry = outbox_expire(s->outbox, read_clock(s));

	step_spool(s);
	step_state(s);
	send_due(s, send_deadline);
	s->memory_due = outbox_keep_memory_ready(s->outbox, s->now, atomic_load(&s->drive) != DRIVE_STEPS);
	if (s->memory_due < expiry) {
		expiry = s->memory_due;
	}
	if (s->protocol->ops->step != NULL) {
		s->protocol->ops->step(s->protocol, s, waiting_time(s, expiry, max_wait));
	}
	step_spool(s);
}

void sender_answered(struct sender *s, struct entry *entry, const struct outcome *outcome)
{
	/* A sink in C answers at once, and the exact time costs 4 % of a new event. */
	const int64_t now = clock_coarse(s->clock);

	s->now = now > s->now ? now : s->now;
	outbox_answer(s->outbox, entry, outcome, s->now);
}

void sender_request_ended(struct sender *s, enum request_result result, int64_t retry_after)
{
	bool outage_ended;

	s->in_flight--;
	outage_ended = throttle_ended(&s->throttle, result, retry_after, s->now, retry_random(&s->random));
	sender_publish_throttle(s);
	if (outage_ended) {
		outbox_make_due_now(s->outbox);
	}
}

bool sender_is_stalled(const struct sender *s)
{
	int64_t now = clock_monotonic(s->clock);
	struct outbox_stats stats;

	if (!evrec_clock_is_fake(s->clock)) {
		return false;
	}
	outbox_get_stats(s->outbox, &stats);
	return stats.in_flight == 0 && (now < atomic_load(&s->view.paused_until) ||
	                                now < atomic_load(&s->view.next_slot) || outbox_stalled(s->outbox, now));
}

void sender_get_throttle(const struct sender *s, evrec_throttle_stats *stats)
{
	int64_t until = atomic_load(&s->view.paused_until);

	stats->paused_for = until == INT64_MIN ? 0 : time_since(until, clock_monotonic(s->clock));
	stats->window = stats->paused_for != 0 ? 0 : atomic_load(&s->view.window);
	stats->rate = atomic_load(&s->view.rate);
	stats->refused = atomic_load(&s->view.refused);
}

struct outbox *sender_outbox(struct sender *s)
{
	return s->outbox;
}

enum evrec_api sender_api(const struct sender *s, enum evrec_api usual)
{
	return s->protocol->ops->api == NULL ? usual : s->protocol->ops->api(s->protocol);
}

evrec_clock *sender_clock(const struct sender *s)
{
	return s->clock;
}

void sender_save_kept(struct sender *s)
{
	struct signals signals;

	if (s->spooler != NULL) {
		signals_block(&signals);
		spooler_save(s->spooler, s->outbox, s->clock);
		signals_unblock(&signals);
	}
}

void sender_save_state(struct sender *s)
{
	struct signals signals;

	if (s->state == NULL && s->protocol->ops->finish == NULL) {
		return;
	}
	signals_block(&signals);
	if (s->protocol->ops->finish != NULL) {
		s->protocol->ops->finish(s->protocol, s);
	}
	if (s->state != NULL) {
		state_file_save(s->state, s->outbox);
	}
	signals_unblock(&signals);
}

bool sender_end_steps(struct sender *s, int64_t deadline)
{
	const struct timespec moment = { 0, EVREC_SECOND / 1000 };

	while (!sender_has_reached(s, SENDER_FINISHED)) {
		if (!atomic_flag_test_and_set(&s->stepping)) {
			sender_save_kept(s);
			sender_save_state(s);
			sender_enter(s, SENDER_FINISHED);
		} else if (sender_real_now() >= deadline && !atomic_load(&s->on_disk)) {
			return false;
		} else {
			(void)nanosleep(&moment, NULL);
		}
	}
	return true;
}

static void step(struct sender *s, int64_t deadline, int64_t send_deadline)
{
	struct signals signals;
	int64_t left;

	/* After a join that timed out, the protocol may still hold entries that the outbox has freed. */
	if (sender_has_reached(s, SENDER_STOPPING) || atomic_flag_test_and_set(&s->stepping)) {
		return;
	}
	if (s->does_io) {
		signals_block(&signals);
	}
	do {
		left = outbox_empty(s->outbox) ? 0 : deadline - sender_real_now();
		sender_go_round(s, left, send_deadline);
	} while (left > 0);
	if (s->does_io) {
		signals_unblock(&signals);
	}
	atomic_flag_clear(&s->stepping);
}

void sender_step_until(struct sender *s, int64_t deadline)
{
	step(s, deadline, INT64_MAX);
}

void sender_step_once(struct sender *s, int64_t send_deadline)
{
	step(s, 0, send_deadline);
}

int64_t sender_step_delay(struct sender *s, int64_t max)
{
	int64_t delay = STEP_MIN;

	if (sender_is_parents(s) || sender_has_reached(s, SENDER_STOPPING)) {
		return INT64_MAX;
	}
	/* If the flag is set, the end of the process steps the sender. */
	if (!atomic_flag_test_and_set(&s->stepping)) {
		(void)read_clock(s);
		if (s->in_flight == 0 && !s->held) {
			delay = waiting_time(s, s->memory_due, IDLE_MAX);
		}
		atomic_flag_clear(&s->stepping);
	}
	if (delay == IDLE_MAX && outbox_at_rest(s->outbox)) {
		return INT64_MAX;
	}
	delay = delay < max ? delay : max;
	return delay < STEP_MIN ? STEP_MIN : delay;
}

void sender_free_parts(struct sender *s)
{
	struct signals signals;

	s->protocol->ops->free(s->protocol);
	/* SQLite may write when it closes a file. */
	signals_block(&signals);
	spooler_free(s->spooler);
	signals_unblock(&signals);
	state_file_free(s->state);
	outbox_free(s->outbox);
	evrec_clock_release(s->clock);
	mem_free(s->batch);
}
