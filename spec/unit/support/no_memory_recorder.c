#include "no_memory_recorder.h"

#include "alloc_failure.h"

bool no_memory_recorder_open(struct no_memory_recorder *f, evrec_broadcaster_options *options)
{
	/* Recording calls bring one of the keys, so that both maps have to be merged. */
	const evrec_pair pairs[] = { { EVREC_STR("a"), EVREC_STR("default") },
		                     { EVREC_STR("z"), EVREC_STR("default") } };
	evrec_recorder_options of_recorder;
	evrec_error err = { 0 };

	evrec_recorder_options_init(&of_recorder);
	of_recorder.component = EVREC_STR("component");
	of_recorder.host = EVREC_STR("host");
	of_recorder.labels = of_recorder.annotations = (evrec_map){ pairs, 2 };
	f->clock = evrec_clock_fake(T0);
	alloc_failure_check(f->clock != NULL);
	if (f->clock == NULL) {
		return false;
	}
	options->clock = f->clock;
	f->b = evrec_broadcaster_new(options, &err);
	alloc_failure_check_error(f->b != NULL, &err);
	if (f->b == NULL) {
		return false;
	}
	evrec_broadcaster_may_own(f->b);
	f->r = evrec_recorder_new(f->b, &of_recorder, &err);
	alloc_failure_check_error(f->r != NULL, &err);
	return f->r != NULL;
}

evrec_watch *no_memory_recorder_start(struct no_memory_recorder *f, evrec_sink *sink,
                                      const evrec_correlator_options *correlator)
{
	evrec_error err = { 0 };
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, correlator, &err);

	alloc_failure_check_error(watch != NULL, &err);
	return watch;
}

int no_memory_recorder_record(struct no_memory_recorder *f, evrec_str object, evrec_str note, evrec_error *err)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"), .name = object, .ns = EVREC_STR("shop") };
	const evrec_pair pair = { EVREC_STR("a"), EVREC_STR("b") };
	const evrec_emit emit = { .regarding = &regarding,
		                  .related = &regarding,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .action = EVREC_STR("A"),
		                  .note = note,
		                  .annotations = { &pair, 1 },
		                  .labels = { &pair, 1 },
		                  .timestamp = EVREC_UNSET };

	return evrec_recorder_emit(f->r, &emit, err);
}

void no_memory_recorder_close(struct no_memory_recorder *f)
{
	evrec_recorder_free(f->r);
	if (f->b != NULL) {
		(void)evrec_broadcaster_shutdown(f->b, 0, NULL);
	}
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
}
