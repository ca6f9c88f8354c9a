/*
 * evrec.c - runs one workload through evrec's C interface, and prints the line that README.md describes.
 *
 * usage: evrec VARIANT WORKLOAD AMOUNT    (README.md lists them)
 */
#include "bench.h"

#define OBJECTS 8192
#define MESSAGES 4096

struct bench {
	struct evrec evrec;
	bool prepared;            /* record about reference_at instead of object_at */
	size_t objects, messages; /* the lengths of the arrays */
	size_t object, message;   /* the indices of the next event */
	evrec_reference object_at[OBJECTS];
	evrec_prepared_ref *reference_at[OBJECTS];
	evrec_str message_at[MESSAGES];
	evrec_fields event_at[OBJECTS];
};

static void make(struct bench *bench, const char *workload)
{
	size_t i;

	bench->objects = strcmp(workload, "unique") == 0 ? OBJECTS : 1;
	bench->messages = strcmp(workload, "similar") == 0 ? MESSAGES : 1;
	for (i = 0; i < bench->objects; i++) {
		bench->object_at[i] = object_of(i);
		bench->reference_at[i] = evrec_prepared_ref_new(&bench->object_at[i], NULL);
		if (bench->reference_at[i] == NULL) {
			die("no memory");
		}
	}
	for (i = 0; i < bench->messages; i++) {
		bench->message_at[i] =
			bench->messages == 1
				? MESSAGE
				: numbered("Readiness probe failed: HTTP probe failed with statuscode: 503, try ", 4,
		                           i);
	}
	for (i = 0; i < bench->objects || i < bench->messages; i++) {
		bench->event_at[i] =
			event_of(&bench->object_at[i % bench->objects], bench->message_at[i % bench->messages]);
	}
}

static void batch(void *ctx)
{
	struct bench *bench = ctx;
	size_t i;

	for (i = 0; i < BATCH; i++) {
		if (bench->evrec.b == NULL) {
			correlate(&bench->evrec, &bench->event_at[bench->object + bench->message]);
		} else if (bench->prepared) {
			record(&bench->evrec, bench->reference_at[bench->object], NULL,
			       bench->message_at[bench->message]);
		} else {
			record(&bench->evrec, NULL, &bench->object_at[bench->object],
			       bench->message_at[bench->message]);
		}
		bench->object = bench->object + 1 == bench->objects ? 0 : bench->object + 1;
		bench->message = bench->message + 1 == bench->messages ? 0 : bench->message + 1;
	}
	if (bench->evrec.b != NULL) {
		evrec_broadcaster_poll(bench->evrec.b);
	}
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct evrec *e = &bench.evrec;
	evrec_correlator_options options;
	evrec_sink_stats stats;
	double spent;
	size_t events;

	if (argc != 4) {
		die("usage: evrec VARIANT WORKLOAD AMOUNT");
	}
	make(&bench, argv[2]);
	evrec_correlator_options_init(&options);
	if (strcmp(argv[2], "limited") != 0) {
		options.burst_size = 1000000000;
	}
	*e = evrec_open(strcmp(argv[1], "correlator") != 0, &options);
	bench.prepared = strcmp(argv[1], "reference") == 0;
	events = measure(batch, &bench, argv[3], bench.objects + bench.messages, &spent);
	if (e->b != NULL) {
		(void)evrec_broadcaster_get_sink_stats(e->b, 1, &stats);
		e->created = stats.created;
		e->patched = stats.patched + stats.coalesced;
		e->skipped = stats.rate_limited;
	}
	printf("%zu\t%.9f\t%llu\t%llu\t%llu\t-\t-\n", events, spent, (unsigned long long)e->created,
	       (unsigned long long)e->patched, (unsigned long long)e->skipped);
	evrec_close(e);
	while (bench.objects > 0) {
		evrec_prepared_ref_release(bench.reference_at[--bench.objects]);
	}
	return 0;
}
