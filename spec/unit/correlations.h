/* correlations.h - a correlator, and events for it. */
#ifndef EVREC_CORRELATIONS_H
#define EVREC_CORRELATIONS_H

#include "unit.h"

static inline evrec_fields event_of(const char *object, const char *reason, const char *message, int64_t now)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = f.regarding.ns = EVREC_STR("default");
	f.regarding.kind = EVREC_STR("Pod");
	f.regarding.name = str_from(object);
	f.type = EVREC_STR("Normal");
	f.reason = str_from(reason);
	f.note = str_from(message);
	f.component = f.controller = EVREC_STR("test");
	f.first = f.last = now;
	f.count = 1;
	return f;
}

static inline evrec_correlator *correlator_of(const evrec_correlator_options *options)
{
	evrec_error err;
	evrec_correlator *c = evrec_correlator_new(options, &err);

	assert_non_null(c);
	return c;
}

/* Without a limit on what gets through. */
static inline evrec_correlator_options unlimited(void)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.burst_size = 1000000;
	return options;
}

static inline evrec_correlation correlate(evrec_correlator *c, const char *object, const char *reason,
                                          const char *message, int64_t now)
{
	evrec_fields event = event_of(object, reason, message, now);
	evrec_correlation r;

	assert_int_equal(evrec_correlator_correlate(c, &event, now, &r), 0);
	return r;
}

#endif
