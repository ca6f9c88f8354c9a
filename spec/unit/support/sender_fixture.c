#include "sender_fixture.h"

#include <unistd.h>

void sender_fixture_open_limited(struct sender_fixture *f, bool threadless, evrec_clock *clock, struct spooler *spooler,
                                 const evrec_limits *limits)
{
	struct sender_options options = { .clock = clock,
		                          .drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO,
		                          .spooler = spooler };

	*f = (struct sender_fixture){ .ob = outbox_new(&fake_write_ops, limits, 1), .clock = clock };
	f->protocol = fake_protocol_new(&f->freed);
	f->sender = sender_new(f->ob, &f->protocol->base, &options);
	assert_non_null(f->sender);
}

void sender_fixture_open_spooled(struct sender_fixture *f, bool threadless, evrec_clock *clock, struct spooler *spooler)
{
	const evrec_limits limits = limits_without_age(1000);

	sender_fixture_open_limited(f, threadless, clock, spooler, &limits);
}

void sender_fixture_open(struct sender_fixture *f, bool threadless, evrec_clock *clock)
{
	sender_fixture_open_spooled(f, threadless, clock, NULL);
}

void sender_fixture_set(struct sender_fixture *f, bool *flag, bool value)
{
	pthread_mutex_lock(&f->protocol->lock);
	*flag = value;
	pthread_cond_broadcast(&f->protocol->changed);
	pthread_mutex_unlock(&f->protocol->lock);
}

void sender_fixture_set_status(struct sender_fixture *f, int status)
{
	pthread_mutex_lock(&f->protocol->lock);
	f->protocol->status = status;
	pthread_mutex_unlock(&f->protocol->lock);
}

unsigned sender_fixture_sent(struct sender_fixture *f)
{
	unsigned n;

	pthread_mutex_lock(&f->protocol->lock);
	n = f->protocol->sent;
	pthread_mutex_unlock(&f->protocol->lock);
	return n;
}

struct outbox_stats sender_fixture_stats(struct sender_fixture *f)
{
	struct outbox_stats stats;

	outbox_check_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

void sender_fixture_wait_empty(struct sender_fixture *f)
{
	int64_t deadline = unit_mono() + SOON;
	struct entry *entry;

	while (!outbox_wait(f->ob, deadline)) {
		while ((entry = outbox_collect(f->ob, 1)) != NULL) {
			outbox_recycle(f->ob, entry);
		}
		assert_true(unit_mono() < deadline);
	}
}

void sender_fixture_wait_sent(struct sender_fixture *f, unsigned n)
{
	int64_t deadline = unit_mono() + SOON;

	while (sender_fixture_sent(f) < n) {
		assert_true(unit_mono() < deadline);
		usleep(1000);
	}
}

void sender_fixture_wait_idle(struct sender_fixture *f)
{
	int64_t deadline = unit_mono() + SOON;
	bool waits = false;

	while (!waits) {
		assert_true(unit_mono() < deadline);
		usleep(1000);
		pthread_mutex_lock(&f->protocol->lock);
		waits = f->protocol->is_waiting && !f->protocol->woken && f->protocol->sent != 0;
		pthread_mutex_unlock(&f->protocol->lock);
	}
}

void sender_fixture_wait_freed(struct sender_fixture *f)
{
	int64_t deadline = unit_mono() + SOON;

	while (__atomic_load_n(&f->freed, __ATOMIC_SEQ_CST) == 0 ||
	       __atomic_load_n(&fake_writes.alive, __ATOMIC_SEQ_CST) != 0) {
		assert_true(unit_mono() < deadline);
		usleep(1000);
	}
}

void sender_fixture_close(struct sender_fixture *f)
{
	int64_t start = unit_mono();

	assert_true(sender_join(f->sender, start + SOON));
	assert_true(unit_mono() - start < SOON); /* no longer than needed */
	assert_true(sender_join(f->sender, 0));  /* idempotent */
	outbox_check_equation(f->ob);
	sender_release(f->sender);
	assert_int_equal(f->freed, 1);
	assert_int_equal(fake_writes.alive, 0);
}
