/*
 * script.h - a transport that does as it is told, and a sender with it.
 */
#ifndef EVREC_SCRIPT_H
#define EVREC_SCRIPT_H

#include "items.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SOON (20 * EVREC_SECOND) /* more than any machine needs; nothing here waits for it in vain */

static inline int64_t mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

struct script {
	struct transport base;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool woken, hang;
	bool silent;         /* nothing is answered */
	bool prompt;         /* all is answered before send returns */
	bool waits;          /* a step does, or did last */
	bool deaf;           /* a step hears its wake only afterwards */
	unsigned at_most;    /* so many answers in a step; 0: all */
	int status;          /* of every answer, */
	unsigned refuse;     /* but for so many first ones, which are 503 */
	int64_t retry_after; /* likewise */
	int64_t delay;       /* before each answer */
	unsigned sent, reloads, held_most;
	unsigned held_len;
	unsigned seen[256];     /* how often "n<i>" was sent */
	struct entry *held[64]; /* to be answered by step */
	bool on_thread, signals_blocked;
	char thread_name[16];
	int tell; /* a byte for each answer, where not -1 */
	unsigned *freed;
};

static inline void note_sent(struct script *script, const struct item *item)
{
	unsigned i;

	if (sscanf(item->name, "n%u", &i) == 1 && i < sizeof(script->seen) / sizeof(script->seen[0])) {
		script->seen[i]++;
	}
}

static inline void script_send(struct transport *t, struct sender *s, struct entry *entry)
{
	struct script *script = (struct script *)t;
	evrec_answer answer = { 0 };
	sigset_t mask;

	pthread_mutex_lock(&script->lock);
	script->sent++;
	note_sent(script, entry->item);
	script->held[script->held_len++] = entry;
	if (script->held_len > script->held_most) {
		script->held_most = script->held_len;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	script->signals_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGPIPE);
	pthread_getname_np(pthread_self(), script->thread_name, sizeof(script->thread_name));
	while (script->hang) {
		pthread_cond_wait(&script->changed, &script->lock);
	}
	if (script->prompt) {
		script->held_len--;
	}
	pthread_mutex_unlock(&script->lock);
	if (script->prompt) {
		answer.status = script->status;
		sender_answered(s, entry, &answer);
	}
}

static inline void script_step(struct transport *t, struct sender *s, int64_t timeout)
{
	struct script *script = (struct script *)t;
	struct timespec until = { .tv_sec = (time_t)((mono() + timeout) / EVREC_SECOND),
		                  .tv_nsec = (long)((mono() + timeout) % EVREC_SECOND) };
	evrec_answer answer = { 0 };
	unsigned n = 0;

	pthread_mutex_lock(&script->lock);
	if (script->held_len == 0 || script->silent) {
		script->waits = timeout > 0;
		while (timeout > 0 && (!script->woken || script->deaf) &&
		       pthread_cond_timedwait(&script->changed, &script->lock, &until) == 0) {
		}
	}
	script->woken = false;
	while (script->held_len != 0 && !script->silent && (script->at_most == 0 || n++ < script->at_most)) {
		struct entry *entry = script->held[--script->held_len];
		struct timespec delay = { 0, (long)script->delay };

		answer.status = script->refuse == 0 ? script->status : 503;
		script->refuse -= script->refuse != 0;
		answer.retry_after = script->retry_after;
		if (script->tell >= 0 && answer.status == 201) {
			(void)!write(script->tell, "x", 1);
		}
		pthread_mutex_unlock(&script->lock);
		nanosleep(&delay, NULL);
		sender_answered(s, entry, &answer);
		assert_int_equal(answer.status, 0);
		pthread_mutex_lock(&script->lock);
	}
	pthread_mutex_unlock(&script->lock);
}

static inline void script_wake(struct transport *t)
{
	struct script *script = (struct script *)t;

	pthread_mutex_lock(&script->lock);
	script->woken = true;
	pthread_cond_broadcast(&script->changed);
	pthread_mutex_unlock(&script->lock);
}

static inline void script_reload(struct transport *t)
{
	((struct script *)t)->reloads++;
}

static inline void script_free(struct transport *t)
{
	struct script *script = (struct script *)t;

	if (script->freed != NULL) {
		__atomic_add_fetch(script->freed, 1, __ATOMIC_SEQ_CST);
	}
	pthread_cond_destroy(&script->changed);
	pthread_mutex_destroy(&script->lock);
	mem_free(script);
}

static const struct transport_ops threaded_ops = {
	.threaded = true,
	.send = script_send,
	.step = script_step,
	.wake = script_wake,
	.reload_credentials = script_reload,
	.free = script_free,
};

static const struct transport_ops polled_ops = {
	.send = script_send,
	.step = script_step,
	.free = script_free,
};

struct fixture {
	struct outbox *ob;
	struct sender *sender;
	struct script *script;
	evrec_clock *clock;
	unsigned freed;
};

static inline struct script *script_new(unsigned *freed)
{
	struct script *script = mem_zalloc(sizeof(*script));
	pthread_condattr_t attr;

	script->base.ops = &threaded_ops;
	script->status = 201;
	script->tell = -1;
	script->freed = freed;
	pthread_mutex_init(&script->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&script->changed, &attr);
	pthread_condattr_destroy(&attr);
	return script;
}

static inline void open_limited(struct fixture *f, bool threadless, evrec_clock *clock, struct spooler *spooler,
                                const evrec_limits *limits)
{
	struct sender_options options = {
		.max_in_flight = 8, .clock = clock, .threadless = threadless, .spooler = spooler
	};

	*f = (struct fixture){ .ob = outbox_new(&item_ops, limits, 1), .clock = clock };
	f->script = script_new(&f->freed);
	f->sender = sender_new(f->ob, &f->script->base, &options);
	assert_non_null(f->sender);
}

static inline void open_with(struct fixture *f, bool threadless, evrec_clock *clock, struct spooler *spooler)
{
	const evrec_limits limits = limits_of(1000);

	open_limited(f, threadless, clock, spooler, &limits);
}

static inline void open_fixture(struct fixture *f, bool threadless, evrec_clock *clock)
{
	open_with(f, threadless, clock, NULL);
}

static inline void set(struct fixture *f, bool *flag, bool value)
{
	pthread_mutex_lock(&f->script->lock);
	*flag = value;
	pthread_cond_broadcast(&f->script->changed);
	pthread_mutex_unlock(&f->script->lock);
}

static inline void set_status(struct fixture *f, int status)
{
	pthread_mutex_lock(&f->script->lock);
	f->script->status = status;
	pthread_mutex_unlock(&f->script->lock);
}

static inline unsigned sent(struct fixture *f)
{
	unsigned n;

	pthread_mutex_lock(&f->script->lock);
	n = f->script->sent;
	pthread_mutex_unlock(&f->script->lock);
	return n;
}

static inline struct outbox_stats stats_of(struct fixture *f)
{
	struct outbox_stats stats;

	assert_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

/* Waits until nothing is pending. */
static inline void wait_empty(struct fixture *f)
{
	int64_t deadline = mono() + SOON;
	struct entry *entry;

	while (!outbox_wait(f->ob, deadline)) {
		while ((entry = outbox_collect(f->ob)) != NULL) {
			outbox_recycle(f->ob, entry);
		}
		assert_true(mono() < deadline);
	}
}

/* Until `n` requests were made. */
static inline void wait_sent(struct fixture *f, unsigned n)
{
	int64_t deadline = mono() + SOON;

	while (sent(f) < n) {
		assert_true(mono() < deadline);
		usleep(1000);
	}
}

/* Until the thread waits in a step, with nothing left to do. */
static inline void wait_waits(struct fixture *f)
{
	int64_t deadline = mono() + SOON;
	bool waits = false;

	while (!waits) {
		assert_true(mono() < deadline);
		usleep(1000);
		pthread_mutex_lock(&f->script->lock);
		waits = f->script->waits && !f->script->woken && f->script->sent != 0;
		pthread_mutex_unlock(&f->script->lock);
	}
}

static inline void wait_freed(struct fixture *f)
{
	int64_t deadline = mono() + SOON;

	while (__atomic_load_n(&f->freed, __ATOMIC_SEQ_CST) == 0 ||
	       __atomic_load_n(&items_alive, __ATOMIC_SEQ_CST) != 0) {
		assert_true(mono() < deadline);
		usleep(1000);
	}
}

static inline void close_fixture(struct fixture *f)
{
	int64_t start = mono();

	assert_true(sender_join(f->sender, start + SOON));
	assert_true(mono() - start < SOON);     /* no longer than needed */
	assert_true(sender_join(f->sender, 0)); /* idempotent */
	assert_equation(f->ob);
	sender_release(f->sender);
	assert_int_equal(f->freed, 1);
	assert_int_equal(items_alive, 0);
}

#endif
