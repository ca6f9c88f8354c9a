/*
 * otlp.c - measures the processor time that an event costs from the outbox to the socket of a receiver of OTLP, and until
 * its answer is in the outbox; recording is not in it.
 *
 * usage: otlp URL protobuf|json gzip|none EVENTS
 */
#include "bench.h"

#include "evrec_otlp.h"

#define CHUNK (20 * 512) /* events that wait when the sink begins to send: 20 requests */
#define GOAL 2.0         /* us an event, of protobuf that is not compressed */

static struct evrec to_receiver(const evrec_otlp_options *options)
{
	const evrec_recorder_options source = { .component = COMPONENT, .host = HOST };
	evrec_broadcaster_options polled;
	evrec_correlator_options correlator;
	struct evrec e = { 0 };
	evrec_sink *sink;
	evrec_error err;

	evrec_broadcaster_options_init(&polled);
	polled.drive = EVREC_DRIVE_POLL;
	polled.on_error = evrec_log_stderr;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1000000000;
	if ((sink = evrec_sink_otlp(options, &err)) == NULL || (e.b = evrec_broadcaster_new(&polled, &err)) == NULL ||
	    (e.watch = evrec_broadcaster_start_recording_to_sink(e.b, sink, &correlator, &err)) == NULL ||
	    (e.recorder = evrec_recorder_new(e.b, &source, &err)) == NULL) {
		die(err.message);
	}
	evrec_sink_release(sink);
	return e;
}

static void tell(const evrec_otlp_options *options, const char *encoding, const char *compression, double us, size_t n)
{
	(void)printf("%s, %s: %.2f us an event, of %zu", encoding, compression, us, n);
	if (options->encoding == EVREC_OTLP_PROTOBUF && options->compression == EVREC_OTLP_NONE) {
		(void)printf(", the goal is %.0f: %s", GOAL, us <= GOAL ? "met" : "NOT met");
	}
	(void)printf("\n");
}

/* Records CHUNK events about as many objects, and sends them. Returns the CPU seconds of the second. */
static double send_chunk(struct evrec *e, evrec_reference *objects, size_t number)
{
	char message[64];
	evrec_error err;
	double begun;

	/* Another message each time makes another event. */
	(void)snprintf(message, sizeof(message), "Back-off restarting failed container %zu", number);
	for (size_t i = 0; i < CHUNK; i++) {
		record(e, NULL, &objects[i], evrec_string(message));
	}
	begun = cpu_seconds();
	if (evrec_broadcaster_flush(e->b, 60 * EVREC_SECOND, &err) != 0) {
		die(err.message);
	}
	return cpu_seconds() - begun;
}

int main(int argc, char **argv)
{
	evrec_reference *objects = calloc(CHUNK, sizeof(*objects));
	evrec_otlp_options options;
	struct evrec e;
	double spent = 0;
	size_t chunks;

	if (argc != 5 || objects == NULL) {
		die("usage: otlp URL protobuf|json gzip|none EVENTS");
	}
	for (size_t i = 0; i < CHUNK; i++) {
		objects[i] = object_of(i);
	}
	evrec_otlp_options_init(&options);
	options.endpoint = evrec_string(argv[1]);
	options.encoding = strcmp(argv[2], "json") == 0 ? EVREC_OTLP_JSON : EVREC_OTLP_PROTOBUF;
	options.compression = strcmp(argv[3], "none") == 0 ? EVREC_OTLP_NONE : EVREC_OTLP_GZIP;
	options.min_interval = 0;
	options.common.limits.max_pending = CHUNK;
	options.common.limits.max_pending_bytes = 1U << 30;
	e = to_receiver(&options);
	(void)send_chunk(&e, objects, 0); /* connects, and makes the buffers long enough */
	chunks = strtoull(argv[4], NULL, 10) / CHUNK + 1;
	for (size_t i = 1; i <= chunks; i++) {
		spent += send_chunk(&e, objects, i);
	}
	tell(&options, argv[2], argv[3], spent * 1e6 / (double)(chunks * CHUNK), chunks * CHUNK);
	evrec_close(&e);
	free(objects);
	return 0;
}
