#define _GNU_SOURCE

#include "fake_protocol.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static void count_sent(struct fake_protocol *protocol, const struct fake_write *item)
{
	unsigned i;

	if (sscanf(item->name, "n%u", &i) == 1 && i < FAKE_PROTOCOL_IDS) {
		protocol->sent_by_id[i]++;
	}
}

static void fake_send(struct protocol *t, struct sender *s, struct entry *const *entries, size_t n)
{
	struct entry *entry = entries[0];
	struct fake_protocol *protocol = (struct fake_protocol *)t;
	evrec_answer answer = { 0 };
	sigset_t mask;

	assert_int_equal(n, 1);
	pthread_mutex_lock(&protocol->lock);
	protocol->sent++;
	count_sent(protocol, entry->item);
	protocol->held[protocol->held_len++] = entry;
	if (protocol->held_len > protocol->most_held) {
		protocol->most_held = protocol->held_len;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	protocol->signals_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGPIPE);
	pthread_getname_np(pthread_self(), protocol->thread_name, sizeof(protocol->thread_name));
	while (protocol->hangs) {
		pthread_cond_wait(&protocol->changed, &protocol->lock);
	}
	if (protocol->answers_in_send) {
		protocol->held_len--;
	}
	pthread_mutex_unlock(&protocol->lock);
	if (protocol->answers_in_send) {
		answer.status = protocol->status;
		answer_request_as_kubernetes(s, entry, &answer);
	}
}

static void fake_step(struct protocol *t, struct sender *s, int64_t timeout)
{
	struct fake_protocol *protocol = (struct fake_protocol *)t;
	struct timespec until = { .tv_sec = (time_t)((unit_mono() + timeout) / EVREC_SECOND),
		                  .tv_nsec = (long)((unit_mono() + timeout) % EVREC_SECOND) };
	evrec_answer answer = { 0 };
	unsigned n = 0;

	pthread_mutex_lock(&protocol->lock);
	if (protocol->held_len == 0 || protocol->silent) {
		protocol->is_waiting = timeout > 0;
		while (timeout > 0 && (!protocol->woken || protocol->ignores_wake) &&
		       pthread_cond_timedwait(&protocol->changed, &protocol->lock, &until) == 0) {
		}
	}
	protocol->woken = false;
	while (protocol->held_len != 0 && !protocol->silent &&
	       (protocol->answers_a_step == 0 || n++ < protocol->answers_a_step)) {
		struct entry *entry = protocol->held[--protocol->held_len];
		struct timespec delay = { 0, (long)protocol->delay };

		answer.status = protocol->failures == 0 ? protocol->status : 500;
		protocol->failures -= protocol->failures != 0;
		answer.retry_after = protocol->retry_after;
		if (protocol->success_fd >= 0 && answer.status == 201) {
			(void)!write(protocol->success_fd, "x", 1);
		}
		pthread_mutex_unlock(&protocol->lock);
		nanosleep(&delay, NULL);
		protocol->unauthorized += answer.status == 401;
		answer_request_as_kubernetes(s, entry, &answer);
		pthread_mutex_lock(&protocol->lock);
	}
	pthread_mutex_unlock(&protocol->lock);
}

static void fake_wake(struct protocol *t)
{
	struct fake_protocol *protocol = (struct fake_protocol *)t;

	pthread_mutex_lock(&protocol->lock);
	protocol->woken = true;
	pthread_cond_broadcast(&protocol->changed);
	pthread_mutex_unlock(&protocol->lock);
}

static void fake_free(struct protocol *t)
{
	struct fake_protocol *protocol = (struct fake_protocol *)t;
	const struct timespec rest = { 0, (long)protocol->free_takes };

	if (protocol->freed != NULL) {
		__atomic_add_fetch(protocol->freed, 1, __ATOMIC_SEQ_CST);
	}
	protocol->base.ops = NULL;
	nanosleep(&rest, NULL);
	pthread_cond_destroy(&protocol->changed);
	pthread_mutex_destroy(&protocol->lock);
	mem_free(protocol);
}

static const struct protocol_ops threaded_ops = {
	.does_io = true,
	.send = fake_send,
	.step = fake_step,
	.wake = fake_wake,
	.free = fake_free,
};

static const struct protocol_ops polled_ops = {
	.send = fake_send,
	.step = fake_step,
	.free = fake_free,
};

struct fake_protocol *fake_protocol_new(unsigned *freed)
{
	struct fake_protocol *protocol = mem_zalloc(sizeof(*protocol));
	pthread_condattr_t attr;

	protocol->base = (struct protocol){ .ops = &threaded_ops, .max_batch = 1, .max_in_flight = 8 };
	protocol->status = 201;
	protocol->success_fd = -1;
	protocol->freed = freed;
	pthread_mutex_init(&protocol->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&protocol->changed, &attr);
	pthread_condattr_destroy(&attr);
	return protocol;
}

void fake_protocol_without_io(struct fake_protocol *protocol)
{
	protocol->base = (struct protocol){ .ops = &polled_ops };
}
