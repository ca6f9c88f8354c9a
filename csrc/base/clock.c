#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */

#include "base/clock.h"

#include "base/base.h"

#include <stdatomic.h>
#include <time.h>

struct evrec_clock {
	atomic_uint refs;
	bool fake;
	/* Only for a fake clock: */
	_Atomic int64_t now;
	_Atomic int64_t monotonic; /* advances with `now`, and is never set back */
};

static evrec_clock real_clock;

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * EVREC_SECOND + t.tv_nsec;
}

evrec_clock *evrec_clock_real(void)
{
	return &real_clock;
}

evrec_clock *evrec_clock_fake(int64_t now)
{
	evrec_clock *clock = mem_zalloc(sizeof(*clock));

	if (clock != NULL) {
		atomic_init(&clock->refs, 1);
		atomic_init(&clock->now, now);
		atomic_init(&clock->monotonic, now);
		clock->fake = true;
	}
	return clock;
}

evrec_clock *evrec_clock_retain(evrec_clock *clock)
{
	if (clock->fake) {
		atomic_fetch_add_explicit(&clock->refs, 1, memory_order_relaxed);
	}
	return clock;
}

void evrec_clock_release(evrec_clock *clock)
{
	if (clock != NULL && clock->fake && atomic_fetch_sub(&clock->refs, 1) == 1) {
		mem_free(clock);
	}
}

bool evrec_clock_is_fake(const evrec_clock *clock)
{
	return clock->fake;
}

HOT int64_t evrec_clock_now(const evrec_clock *clock)
{
	return clock->fake ? atomic_load(&clock->now) : read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic(const evrec_clock *clock)
{
	return clock->fake ? atomic_load(&clock->monotonic) : read_clock(CLOCK_MONOTONIC);
}

int64_t clock_coarse(const evrec_clock *clock)
{
	return clock->fake ? atomic_load(&clock->monotonic) : read_clock(CLOCK_MONOTONIC_COARSE);
}

/* Time for timeouts only advances, so that setting the clock back makes no timeout longer. */
static void advance(evrec_clock *clock, int64_t elapsed)
{
	int64_t before = atomic_load(&clock->monotonic), after;

	do {
		if (__builtin_add_overflow(before, elapsed, &after)) {
			after = INT64_MAX;
		}
	} while (!atomic_compare_exchange_weak(&clock->monotonic, &before, after));
}

void evrec_clock_set(evrec_clock *clock, int64_t now)
{
	int64_t elapsed;

	if (!clock->fake) {
		return;
	}
	elapsed = time_since(now, atomic_exchange(&clock->now, now));
	if (elapsed > 0) {
		advance(clock, elapsed);
	}
}
