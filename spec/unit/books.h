/*
 * books.h - the equations of evrec.h: every event is in one place.
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

/* Returns the stats of the first sink, all zero where there is none. */
static inline evrec_sink_stats check_books(const evrec_broadcaster *b)
{
	evrec_sink_stats s = { 0 };
	evrec_stats all;
	size_t i;

	evrec_broadcaster_get_stats(b, &all);
	assert_int_equal(all.recorded, all.broadcast + all.queued + all.invalid + dropped_sum(all.dropped));
	for (i = all.sinks; i-- > 0;) {
		assert_true(evrec_broadcaster_get_sink_stats(b, i, &s));
		assert_int_equal(s.received, s.rate_limited + s.created + s.patched + s.coalesced + s.pending +
		                                     dropped_sum(s.dropped));
	}
	return s;
}

#endif
