#include "base/clock.h"
#include "base/signals.h"
#include "sender/sender_inner.h"

#include <stdio.h>

#define RELEASED_MAX (30 * EVREC_SECOND)
#define LOOK_AGAIN (EVREC_SECOND / 1000) /* while another thread steps the sender, or uses its state */
#define LOOKS_MAX 100                    /* while another thread uses its state */

/* exit() also steps a sender without a thread, or waits for one that calls the embedder's functions. */
static void list_for_end(struct sender *s)
{
	if (s->listed) {
		return;
	}
	senders_watch_exit(s->protocol);
	(void)pthread_mutex_lock(&senders.lock);
	senders_add(s);
	(void)pthread_mutex_unlock(&senders.lock);
}

static void wake(void *ctx)
{
	struct sender *s = ctx;

	if (sender_is_parents(s) || atomic_load(&s->looks_ahead)) {
		return;
	}
	switch (atomic_load(&s->drive)) {
	case DRIVE_NONE:
		sender_start_thread(s);
		break;
	case DRIVE_STEPS:
		list_for_end(s);
		break;
	case DRIVE_THREAD:
		break;
	}
	sender_poke(s);
}

static void wake_for_state(void *ctx)
{
	if (!sender_has_reached(ctx, SENDER_DRAINING)) {
		wake(ctx);
	}
}

void sender_set_state(struct sender *s, struct state_file *state)
{
	s->state = state;
	state_file_on_change(state, wake_for_state, s);
	if (s->spooler != NULL) {
		outbox_send_rows_first(s->outbox);
		spooler_use_state(s->spooler, state);
	}
}

/* A write that waits for a batch is not delayed, so it needs no row. */
static int64_t rows_after(const struct sender *s)
{
	return time_after(spooler_after(s->spooler), s->protocol->batch_delay);
}

struct sender *sender_new(struct outbox *ob, struct protocol *p, const struct sender_options *options)
{
	struct sender *s = mem_zalloc(sizeof(*s));
	struct entry **batch = mem_alloc(p->max_batch * sizeof(struct entry *));

	if (s == NULL || batch == NULL) {
		mem_free(s);
		mem_free(batch);
		p->ops->free(p);
		spooler_free(options->spooler);
		outbox_free(ob);
		return NULL;
	}
	s->outbox = ob;
	s->protocol = p;
	s->batch = batch;
	s->memory_due = INT64_MAX;
	s->clock = evrec_clock_retain(options->clock);
	s->generation = sender_fork_generation();
	(void)snprintf(s->name, sizeof(s->name), "%s", options->name);
	s->loud = options->loud;
	s->does_io = p->ops->does_io;
	s->random = (uint64_t)sender_real_now() ^ (uintptr_t)s;
	/* Without jitter, for tests with a fake clock, which know the end of a pause to the nanosecond. */
	throttle_init(&s->throttle, p->max_in_flight, !evrec_clock_is_fake(s->clock));
	sender_publish_throttle(s);
	atomic_init(&s->drive, options->drive == EVREC_DRIVE_POLL || !s->does_io ? DRIVE_STEPS : DRIVE_NONE);
	atomic_init(&s->phase, SENDER_OPEN);
	atomic_init(&s->give_up, INT64_MAX);
	atomic_flag_clear(&s->stepping);
	outbox_on_work(ob, wake, s);
	outbox_gather(ob, p->max_batch, p->batch_delay);
	if (p->append_only) {
		outbox_append_only(ob);
	}
	s->spooler = options->spooler;
	if (s->spooler != NULL) {
		outbox_expect(ob, true);
		outbox_write_rows_after(ob, rows_after(s));
	}
	return s;
}

void sender_begin(struct sender *s)
{
	if (s->spooler != NULL && atomic_load(&s->drive) != DRIVE_THREAD && !sender_has_reached(s, SENDER_DRAINING)) {
		wake(s);
	}
}

/* Waits while another thread steps it, or computes its delay (sender_step_delay). False: it ends. */
static bool begin_step(struct sender *s)
{
	const struct timespec moment = { 0, LOOK_AGAIN };

	while (!sender_has_reached(s, SENDER_STOPPING)) {
		if (!atomic_flag_test_and_set(&s->stepping)) {
			return true;
		}
		(void)nanosleep(&moment, NULL);
	}
	return false;
}

void sender_look_ahead(struct sender *s)
{
	struct signals signals;

	if (s->spooler == NULL || s->state == NULL || sender_is_parents(s) || atomic_load(&s->drive) == DRIVE_THREAD ||
	    !begin_step(s)) {
		return;
	}
	/* News would start the thread, which uses the spooler. */
	atomic_store(&s->looks_ahead, true);
	signals_block(&signals);
	spooler_look_ahead(s->spooler, s->outbox, atomic_load(&s->drive) == DRIVE_STEPS);
	signals_unblock(&signals);
	atomic_flag_clear(&s->stepping);
}

void sender_end_look_ahead(struct sender *s)
{
	const struct timespec moment = { 0, LOOK_AGAIN };
	struct signals signals;
	int tries = 0;

	if (!atomic_load(&s->looks_ahead) || sender_is_parents(s) || !begin_step(s)) {
		return;
	}
	while (!state_file_write_ahead(s->state, s->outbox, clock_monotonic(s->clock),
	                               atomic_load(&s->drive) == DRIVE_STEPS) &&
	       tries++ < LOOKS_MAX) {
		(void)nanosleep(&moment, NULL);
	}
	signals_block(&signals);
	spooler_end_look_ahead(s->spooler, s->outbox);
	signals_unblock(&signals);
	atomic_flag_clear(&s->stepping);
	atomic_store(&s->looks_ahead, false);
	sender_begin(s);
}

void sender_close_state(struct sender *s)
{
	if (!sender_is_parents(s) && sender_has_reached(s, SENDER_FINISHED)) {
		sender_save_state(s);
		if (s->state != NULL) {
			state_file_close(s->state);
		}
	}
}

bool sender_needs_step(const struct sender *s)
{
	return atomic_load(&s->drive) == DRIVE_STEPS;
}

bool sender_lacks_thread(const struct sender *s)
{
	return s->does_io && sender_needs_step(s);
}

/* Unlists all senders that were released without a thread and have writes to send; linked by `next`. */
static struct sender *take_orphans(void)
{
	struct sender *taken = NULL, *next;

	(void)pthread_mutex_lock(&senders.lock);
	for (struct sender *s = senders.head; s != NULL; s = next) {
		next = s->next;
		if (s->released && atomic_load(&s->drive) == DRIVE_STEPS) {
			senders_remove(s);
			senders.away++;
			s->next = taken;
			taken = s;
		}
	}
	(void)pthread_mutex_unlock(&senders.lock);
	return taken;
}

/* Steps the released senders that have no thread, without the lock, for which a recording call may wait. */
static void step_orphans(void)
{
	struct sender *s, *next;

	for (s = take_orphans(); s != NULL; s = next) {
		bool over;

		next = s->next;
		sender_step_until(s, 0);
		over = outbox_empty(s->outbox) || sender_has_given_up(s);
		if (over) {
			(void)sender_end_steps(s, 0);
			sender_tell_losses(s);
			sender_free_parts(s);
		}
		(void)pthread_mutex_lock(&senders.lock);
		senders.away--;
		if (!over) {
			senders_add(s);
		}
		(void)pthread_mutex_unlock(&senders.lock);
		if (over) {
			mem_free(s);
		}
	}
}

void sender_step_by(struct sender *s, int64_t deadline)
{
	if (sender_is_parents(s) || !sender_needs_step(s) || sender_has_reached(s, SENDER_STOPPING)) {
		return;
	}
	sender_step_once(s, deadline);
	step_orphans();
}

void sender_step(struct sender *s)
{
	sender_step_by(s, INT64_MAX);
}

bool sender_has_ended(const struct sender *s)
{
	bool ended;

	(void)pthread_mutex_lock(&senders.lock);
	ended = atomic_load(&s->drive) != DRIVE_THREAD || sender_has_reached(s, SENDER_FINISHED);
	(void)pthread_mutex_unlock(&senders.lock);
	return ended;
}

static bool is_finished(const struct sender *s)
{
	return sender_has_reached(s, SENDER_FINISHED);
}

static void wait_for_end(const struct sender *s, int64_t deadline)
{
	while (!is_finished(s) && (senders_wait(deadline) || (atomic_load(&s->on_disk) && senders_wait_for_disk()))) {
	}
}

enum joined { JOINED, JOINED_LATE, HANGS };

/* HANGS: it is in a call that does not end, such as a write to a disk that hangs; all pending entries were dropped. */
static enum joined join_thread(struct sender *s, int64_t deadline)
{
	enum joined joined = JOINED;

	(void)pthread_mutex_lock(&senders.lock);
	wait_for_end(s, deadline);
	if (!is_finished(s)) {
		joined = JOINED_LATE;
		sender_enter(s, SENDER_STOPPING);
		for (int turn = 0; turn < LETTING_GO_TURNS && !is_finished(s); turn++) {
			wait_for_end(s, sender_real_now() + LETTING_GO_MAX / LETTING_GO_TURNS);
		}
	}
	if (is_finished(s)) {
		sender_join_thread(s);
	} else {
		/*
		 * With the lock held: without it the thread might continue, and spool the entries that are dropped
		 * here.
		 */
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
	} else if (atomic_load(&s->drive) == DRIVE_STEPS) {
		sender_step_until(s, deadline);
	}
	if (joined == HANGS) {
		return false;
	}
	sender_enter(s, SENDER_STOPPING);
	if (atomic_load(&s->drive) != DRIVE_THREAD && !sender_end_steps(s, sender_real_now() + LETTING_GO_MAX)) {
		return false;
	}
	outbox_get_stats(s->outbox, &stats);
	outbox_drop_all(s->outbox, EVREC_CAUSE_CLOSED);
	outbox_cut_off(s->outbox);
	return joined == JOINED && stats.pending == 0 && stats.spooled == 0;
}

/* True: without its owner, its thread drives it, or exit() and the polls of others do. */
static bool can_go_on(const struct sender *s)
{
	if (atomic_load(&s->drive) == DRIVE_THREAD) {
		return !is_finished(s);
	}
	return s->listed && s->does_io && !sender_has_reached(s, SENDER_STOPPING) && !outbox_empty(s->outbox);
}

void sender_release(struct sender *s)
{
	bool thread, going_on;

	if (sender_is_parents(s)) {
		return;
	}
	outbox_release_all(s->outbox, clock_monotonic(s->clock));
	(void)pthread_mutex_lock(&senders.lock);
	thread = atomic_load(&s->drive) == DRIVE_THREAD;
	going_on = can_go_on(s);
	if (going_on) {
		s->released = true;
		if (atomic_load(&s->give_up) == INT64_MAX) {
			atomic_store(&s->give_up, sender_real_now() + RELEASED_MAX);
		}
		sender_enter(s, SENDER_DRAINING);
	} else {
		if (thread) {
			sender_join_thread(s);
		}
		senders_remove(s);
	}
	(void)pthread_mutex_unlock(&senders.lock);
	if (!going_on) {
		const bool ended = !thread && s->does_io && sender_end_steps(s, 0);

		/* sender_end_steps writes the state, too, and removes the files of a sender that has no thread. */
		if (!ended) {
			sender_save_state(s);
		}
		sender_tell_losses(s);
		sender_free_parts(s);
		mem_free(s);
	}
}
