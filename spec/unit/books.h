/*
 * books.h - the equations of evrec.h, looked at after every step of a test that has a broadcaster; and those steps.
 */
#ifndef EVREC_BOOKS_H
#define EVREC_BOOKS_H

#include "unit.h"

static inline uint64_t dropped_sum(const uint64_t *dropped)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < EVREC_CAUSES; i++) {
		sum += dropped[i];
	}
	return sum;
}

static inline void assert_sink_books(const evrec_sink_stats *s)
{
	assert_int_equal(s->received, s->rate_limited + s->created + s->patched + s->coalesced + s->pending +
	                                      s->spooled + dropped_sum(s->dropped));
	assert_true(s->pending_writes <= s->pending);
	assert_true((s->pending == 0) == (s->pending_writes == 0));
	assert_true(s->rate_limited <= s->correlator.why[EVREC_RATE_LIMITED]);
}

/* All of a broadcaster's; returns the stats of its first sink. */
static inline evrec_sink_stats check_books(const evrec_broadcaster *b)
{
	evrec_sink_stats s = { 0 };
	evrec_stats all;
	size_t i;

	evrec_broadcaster_get_stats(b, &all);
	assert_int_equal(all.recorded, all.broadcast + all.queued + all.invalid + dropped_sum(all.dropped));
	for (i = all.sinks; i-- > 0;) {
		assert_true(evrec_broadcaster_get_sink_stats(b, i, &s));
		assert_sink_books(&s);
		assert_true(s.received <= all.broadcast + s.restored);
	}
	return s;
}

/*
 * The whole way in one line, where every sink was there from the beginning and none was stopped: what was recorded is,
 * for each of them, in exactly one place.
 */
static inline void check_whole_way(const evrec_broadcaster *b)
{
	evrec_sink_stats s;
	evrec_stats all;
	size_t i;

	(void)check_books(b);
	evrec_broadcaster_get_stats(b, &all);
	for (i = 0; evrec_broadcaster_get_sink_stats(b, i, &s); i++) {
		assert_int_equal(all.recorded + s.restored,
		                 all.invalid + all.queued + dropped_sum(all.dropped) + s.rate_limited + s.created +
		                         s.patched + s.coalesced + s.pending + s.spooled + dropped_sum(s.dropped));
	}
}

static inline int emit(evrec_recorder *r, const evrec_broadcaster *b, const evrec_emit *what)
{
	int code = evrec_recorder_emit(r, what, NULL);

	(void)check_books(b);
	return code;
}

static inline void poll_once(evrec_broadcaster *b)
{
	evrec_broadcaster_poll(b);
	(void)check_books(b);
}

static inline int flush(evrec_broadcaster *b, int64_t timeout)
{
	int code = evrec_broadcaster_flush(b, timeout);

	(void)check_books(b);
	return code;
}

static inline int shut_down(evrec_broadcaster *b, int64_t timeout)
{
	int code = evrec_broadcaster_shutdown(b, timeout);

	(void)check_books(b);
	return code;
}

#endif
