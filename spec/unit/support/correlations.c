#include "correlations.h"

evrec_fields pod_event(const char *object, const char *reason, const char *message, int64_t now)
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

evrec_correlator *correlator_with(const evrec_correlator_options *options)
{
	evrec_error err;
	evrec_correlator *c = evrec_correlator_new(options, &err);

	assert_non_null(c);
	return c;
}

evrec_correlator_options unlimited_options(void)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	options.burst_size = 1000000;
	return options;
}

evrec_correlation correlate_pod_event(evrec_correlator *c, const char *object, const char *reason, const char *message,
                                      int64_t now)
{
	evrec_fields event = pod_event(object, reason, message, now);
	evrec_correlation r;

	assert_int_equal(evrec_correlator_correlate(c, &event, now, &r), 0);
	return r;
}
