#include "stats_invariants.h"

uint64_t stats_dropped(const uint64_t dropped[EVREC_CAUSES])
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < EVREC_CAUSES; i++) {
		sum += dropped[i];
	}
	return sum;
}

void stats_check_sink(const evrec_sink_stats *s)
{
	assert_int_equal(s->received, s->rate_limited + s->created + s->patched + s->coalesced + s->counted +
	                                      s->pending + s->spooled + stats_dropped(s->dropped));
	assert_true(s->series.ongoing <= s->series.series);
	assert_true(s->series.evicted <= s->series.finished);
	assert_true(s->series.finished <= s->series.begun);
	if (s->series.begun == 0) {
		/* The end of a series may be a write without an occurrence. */
		assert_true(s->pending_writes <= s->pending);
		assert_true((s->pending == 0) == (s->pending_writes == 0));
		/* A correlator may have a minimum interval. */
		assert_true(s->counted == 0 || s->correlator.correlated != 0);
	}
}

evrec_sink_stats stats_check_equations(const evrec_broadcaster *b)
{
	evrec_sink_stats s = { 0 }, first = { 0 };
	evrec_stats all;
	size_t number, sinks = 0;

	evrec_broadcaster_get_stats(b, &all);
	assert_int_equal(all.recorded, all.broadcast + all.queued + all.invalid + stats_dropped(all.dropped));
	for (number = 1; evrec_broadcaster_next_sink(b, &number); number++) {
		assert_true(evrec_broadcaster_get_sink_stats(b, number, &s));
		assert_int_equal(s.number, number);
		stats_check_sink(&s);
		assert_true(s.received <= all.broadcast + s.restored);
		/* A series has no part in these stats. */
		assert_true(s.correlator.correlated == 0 || s.rate_limited <= s.correlator.why[EVREC_RATE_LIMITED]);
		first = sinks++ == 0 ? s : first;
	}
	assert_int_equal(all.sinks, sinks);
	stats_check_sink(&all.ended);
	assert_int_equal(all.ended.pending, 0);
	assert_int_equal(all.ended.counted, 0);
	return first;
}

void stats_check_end_to_end(const evrec_broadcaster *b)
{
	evrec_sink_stats s;
	evrec_stats all;
	size_t number;

	(void)stats_check_equations(b);
	evrec_broadcaster_get_stats(b, &all);
	for (number = 1; evrec_broadcaster_next_sink(b, &number); number++) {
		assert_true(evrec_broadcaster_get_sink_stats(b, number, &s));
		assert_int_equal(all.recorded + s.restored, all.invalid + all.queued + stats_dropped(all.dropped) +
		                                                    s.rate_limited + s.created + s.patched +
		                                                    s.coalesced + s.counted + s.pending + s.spooled +
		                                                    stats_dropped(s.dropped));
	}
}

int checked_emit(evrec_recorder *r, const evrec_broadcaster *b, const evrec_emit *emit)
{
	int code = evrec_recorder_emit(r, emit, NULL);

	(void)stats_check_equations(b);
	return code;
}

void checked_poll(evrec_broadcaster *b)
{
	evrec_broadcaster_poll(b);
	(void)stats_check_equations(b);
}

int checked_flush(evrec_broadcaster *b, int64_t timeout)
{
	int code = evrec_broadcaster_flush(b, timeout, NULL);

	(void)stats_check_equations(b);
	return code;
}

int checked_shutdown(evrec_broadcaster *b, int64_t timeout)
{
	int code = evrec_broadcaster_shutdown(b, timeout, NULL);

	(void)stats_check_equations(b);
	return code;
}
