/*
 * in_cluster.c - a program in a pod, without Lua: records one event about the pod, and is safe to be stopped meanwhile.
 *
 *   in_cluster NAMESPACE POD [FOLDER]
 *
 * README.md says how to build it. FOLDER holds `token` and `ca.crt`; by default it is where Kubernetes puts them. The
 * pod's service account needs the verbs create and patch on events.
 */
#include "evrec.h"

#include <signal.h>
#include <stdio.h>

static int fail(const char *what, const evrec_error *err)
{
	(void)fprintf(stderr, "in_cluster: %s: %s\n", what, err->message);
	return 1;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	(void)fprintf(stderr, "in_cluster: %s: %s\n", name, message);
}

static int record(evrec_recorder *recorder, const char *ns, const char *pod)
{
	const evrec_reference object = { .kind = EVREC_STR("Pod"),
		                         .api_version = EVREC_STR("v1"),
		                         .ns = evrec_string(ns),
		                         .name = evrec_string(pod) };
	evrec_emit started;
	evrec_error err;

	evrec_emit_init(&started);
	started.regarding = &object;
	started.type = EVREC_STR("Normal");
	started.reason = EVREC_STR("Started");
	started.note = EVREC_STR("Started without Lua");
	return evrec_recorder_emit(recorder, &started, &err) == 0 ? 0 : fail("record", &err);
}

static int run(evrec_broadcaster *broadcaster, evrec_sink *sink, const char *ns, const char *pod)
{
	const int signals[] = { SIGTERM, SIGINT };
	evrec_recorder *recorder;
	evrec_watch *watch;
	evrec_error err;
	int code;

	if (evrec_on_signal(signals, 2, 2 * EVREC_SECOND, &err) != 0) {
		return fail("signals", &err);
	}
	watch = evrec_broadcaster_start_recording_to_sink(broadcaster, sink, NULL, &err);
	if (watch == NULL) {
		return fail("sink", &err);
	}
	evrec_watch_free(watch); /* it goes on */
	recorder = evrec_recorder_new(broadcaster, &(evrec_recorder_options){ .component = EVREC_STR("in-cluster") },
	                              &err);
	if (recorder == NULL) {
		return fail("recorder", &err);
	}
	code = record(recorder, ns, pod);
	if (code == 0 && evrec_broadcaster_shutdown(broadcaster, 10 * EVREC_SECOND, &err) != 0) {
		code = fail("shutdown", &err);
	}
	evrec_recorder_free(recorder);
	return code;
}

int main(int argc, char **argv)
{
	evrec_broadcaster_options options;
	evrec_broadcaster *broadcaster;
	evrec_sink *sink;
	evrec_error err;
	int code;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: in_cluster NAMESPACE POD [FOLDER]\n");
		return 64;
	}
	sink = evrec_sink_in_cluster(evrec_string(argc > 3 ? argv[3] : NULL), NULL, &err);
	if (sink == NULL) {
		return fail("sink", &err);
	}
	evrec_broadcaster_options_init(&options);
	options.on_error = on_error;
	broadcaster = evrec_broadcaster_new(&options, &err);
	code = broadcaster != NULL ? run(broadcaster, sink, argv[1], argv[2]) : fail("broadcaster", &err);
	evrec_broadcaster_free(broadcaster);
	evrec_sink_release(sink);
	return code;
}
