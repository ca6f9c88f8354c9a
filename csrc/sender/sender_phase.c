#include "base/clock.h"
#include "sender/sender_inner.h"

void sender_poke(struct sender *s)
{
	if (atomic_load(&s->drive) == DRIVE_THREAD && s->protocol->ops->wake != NULL) {
		s->protocol->ops->wake(s->protocol);
	}
}

void sender_enter(struct sender *s, enum sender_phase phase)
{
	enum sender_phase now = atomic_load(&s->phase);

	while (now < phase && !atomic_compare_exchange_weak(&s->phase, &now, phase)) {
	}
	sender_poke(s);
}

bool sender_has_reached(const struct sender *s, enum sender_phase phase)
{
	return atomic_load(&s->phase) >= phase;
}

bool sender_has_given_up(const struct sender *s)
{
	enum sender_phase phase = atomic_load(&s->phase);

	return phase >= SENDER_STOPPING || (phase >= SENDER_DRAINING && sender_real_now() >= atomic_load(&s->give_up));
}

void sender_end(struct sender *s)
{
	if (!sender_is_parents(s)) {
		outbox_release_all(s->outbox, clock_monotonic(s->clock));
		outbox_close(s->outbox);
		sender_enter(s, SENDER_ENDING);
	}
}

void sender_join_thread(struct sender *s)
{
	if (!s->joined) {
		s->joined = true;
		(void)pthread_join(s->thread, NULL);
	}
}
