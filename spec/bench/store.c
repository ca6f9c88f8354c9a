/*
 * store.c - fills a store with events through its sink, and says what an event costs: processor time of the sink's
 * thread, and bytes of the file beyond the events' JSON.
 *
 * usage: store PATH [EVENTS [related|independent]]
 *
 * By default the fields of an event belong together as in a cluster: a reason has one type and one controller. With
 * "independent" each field is drawn on its own, which makes nearly each event a facet of its own.
 */
#include "evrec.h"
#include "evrec_read.h"
#include "goal.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define CHUNK 5000 /* events between two flushes */
#define CONTROLLERS 16
#define NODES 200

static double seconds(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

_Noreturn static void die(const char *message)
{
	(void)fprintf(stderr, "store: %s\n", message);
	exit(1);
}

static unsigned below(unsigned n)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((state >> 33) % n);
}

#define TEXT(name, ...)                                                                                                \
	char name##_text[96];                                                                                          \
	evrec_str name = { name##_text, (size_t)snprintf(name##_text, sizeof(name##_text), __VA_ARGS__) }

static evrec_recorder *recorders[CONTROLLERS][NODES];

static void record(unsigned i, bool independent)
{
	unsigned object = below(20000), why = below(50), node = object % NODES;
	unsigned controller = independent ? below(CONTROLLERS) : why % CONTROLLERS;

	if (independent) {
		node = below(NODES);
	}
	TEXT(ns, "team-%u", object % 40);
	TEXT(name, "web-%u-5d8f9c7b6d-x%u", object % 400, object);
	TEXT(uid, "0d9e4b5a-1f2c-4d3e-9a8b-%012u", object);
	TEXT(reason, "ReasonNumber%u", why);
	TEXT(action, "Action%u", independent ? below(10) : why % 10);
	TEXT(host, "node-%u.example.com", node);
	TEXT(note, "Container image number %u pulled in %u ms, and started in %u ms on this node", i, below(9999),
	     below(999));
	evrec_reference pod = {
		.kind = EVREC_STR("Pod"), .api_version = EVREC_STR("v1"), .name = name, .ns = ns, .uid = uid
	};
	evrec_reference machine = { .kind = EVREC_STR("Node"), .api_version = EVREC_STR("v1"), .name = host };
	evrec_emit emit;
	evrec_error err;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.related = below(5) == 0 ? &machine : NULL;
	emit.type = (independent ? below(5) : why % 5) == 0 ? EVREC_STR("Warning") : EVREC_STR("Normal");
	emit.reason = reason;
	emit.action = action;
	emit.note = note;
	if (evrec_recorder_emit(recorders[controller][node], &emit, &err) != 0) {
		die(err.message);
	}
}

/* The bytes of the file, all of which the last writer's end has brought from its log into it. */
static double file_bytes(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0) {
		die(path);
	}
	return (double)st.st_size;
}

/* The bytes of the JSON of all events in the store, as a reader gets them. */
static double json_bytes(const char *path)
{
	double bytes = 0;
	evrec_query all;
	evrec_found found;
	evrec_error err;
	evrec_source *source = evrec_source_store(evrec_string(path), &err);
	int result;

	evrec_query_init(&all);
	evrec_reader *reader = source == NULL ? NULL : evrec_source_query(source, &all, &err);
	if (reader == NULL) {
		die(err.message);
	}
	while ((result = evrec_reader_next(reader, EVREC_FOREVER, &found, &err)) == EVREC_READ_EVENT) {
		bytes += (double)found.json.len;
	}
	if (result != EVREC_READ_END) {
		die(err.message);
	}
	evrec_reader_free(reader);
	evrec_source_release(source);
	return bytes;
}

int main(int argc, char **argv)
{
	const unsigned events = argc > 2 ? (unsigned)atoi(argv[2]) : 1000000;
	const bool independent = argc > 3 && argv[3][0] == 'i';
	evrec_error err;
	evrec_store_options store;
	evrec_sink_options options;
	evrec_correlator_options correlator;
	double own, all, beyond;

	if (argc < 2) {
		return 2;
	}
	evrec_store_options_init(&store);
	store.path = evrec_string(argv[1]);
	evrec_sink_options_init(&options);
	options.limits.max_pending = (size_t)2 * CHUNK;
	options.limits.max_pending_bytes = 1U << 30;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1000000;
	correlator.max_events = 1000000;
	evrec_broadcaster *b = evrec_broadcaster_new(
		&(evrec_broadcaster_options){ .max_message_bytes = 1024, .on_error = evrec_log_stderr }, &err);
	evrec_sink *sink = evrec_sink_store(&store, &options, &err);
	if (sink == NULL || evrec_broadcaster_start_recording_to_sink(b, sink, &correlator, &err) == NULL) {
		die(err.message);
	}
	for (unsigned c = 0; c < CONTROLLERS; c++) {
		for (unsigned h = 0; h < NODES; h++) {
			TEXT(component, "controller-%u", c);
			TEXT(host, "node-%u.example.com", h);
			evrec_recorder_options source = { .component = component, .host = host };
			recorders[c][h] = evrec_recorder_new(b, &source, &err);
		}
	}
	own = seconds(CLOCK_THREAD_CPUTIME_ID);
	all = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < events; i++) {
		record(i, independent);
		if (i % CHUNK == CHUNK - 1 && evrec_broadcaster_flush(b, 60 * EVREC_SECOND, &err) != 0) {
			die(err.message);
		}
	}
	if (evrec_broadcaster_shutdown(b, 60 * EVREC_SECOND, &err) != 0) {
		die(err.message);
	}
	own = seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	all = seconds(CLOCK_PROCESS_CPUTIME_ID) - all;
	evrec_broadcaster_free(b);
	beyond = (file_bytes(argv[1]) - json_bytes(argv[1])) / events;
	printf("%u events: %.1f s of the sink's thread, with recording %.1f s\n", events, all - own, all);
	goal("events a second through the sink, with recording", "at least 15000", events / all, "",
	     events / all >= 15000);
	goal("bytes of the file beyond the JSON, per event", "at most 400", beyond, "", beyond <= 400);
	return 0;
}
