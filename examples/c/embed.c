/*
 * embed.c - the core without Lua: two events, written as lines of JSON to standard output. README.md says how to build
 * it.
 */
#include "evrec.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const evrec_error *err)
{
	(void)fprintf(stderr, "embed: %s: %s\n", what, err->message);
	exit(1);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	(void)fprintf(stderr, "embed: %s: %s\n", name, message);
}

int main(void)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop"), .name = EVREC_STR("web-0") };
	evrec_emit started;
	evrec_broadcaster_options options;
	evrec_broadcaster *broadcaster;
	evrec_recorder *recorder;
	evrec_sink_stats stats;
	evrec_watch *watch;
	evrec_sink *sink;
	evrec_error err;
	int i;

	evrec_broadcaster_options_init(&options);
	options.on_error = on_error;
	sink = evrec_sink_file(EVREC_STR("-"), NULL, &err);
	if (sink == NULL) {
		fail("sink", &err);
	}
	broadcaster = evrec_broadcaster_new(&options, &err);
	if (broadcaster == NULL) {
		fail("broadcaster", &err);
	}
	watch = evrec_broadcaster_start_recording_to_sink(broadcaster, sink, NULL, &err);
	if (watch == NULL) {
		fail("sink", &err);
	}
	recorder = evrec_recorder_new(broadcaster, &(evrec_recorder_options){ .component = EVREC_STR("embed") }, &err);
	if (recorder == NULL) {
		fail("recorder", &err);
	}
	evrec_emit_init(&started);
	started.regarding = &pod;
	started.type = EVREC_STR("Normal");
	started.reason = EVREC_STR("Started");
	started.note = EVREC_STR("Started container");
	/* Three occurrences, which become one event with a count, and another event. */
	for (i = 0; i < 3; i++) {
		if (evrec_recorder_emit(recorder, &started, &err) != 0) {
			fail("record", &err);
		}
	}
	started.reason = EVREC_STR("Ready");
	started.note = EVREC_STR("It answers");
	if (evrec_recorder_emit(recorder, &started, &err) != 0) {
		fail("record", &err);
	}
	if (evrec_broadcaster_shutdown(broadcaster, 2 * EVREC_SECOND, NULL) != 0) {
		(void)fprintf(stderr, "embed: not all was written in time\n");
	}
	if (evrec_watch_get_sink_stats(watch, &stats)) {
		(void)fprintf(stderr, "embed: %llu of %llu occurrences written\n",
		              (unsigned long long)(stats.created + stats.patched + stats.coalesced),
		              (unsigned long long)stats.received);
	}
	evrec_watch_free(watch);
	evrec_recorder_free(recorder);
	evrec_broadcaster_free(broadcaster);
	evrec_sink_release(sink);
	return 0;
}
