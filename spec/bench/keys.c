/*
 * keys.c - measures the cost of many keys. It fills each of the three caches with KEYS keys, then records events about
 * these keys in random order. With the amount `memory` it prints how many bytes evrec holds for each key instead.
 *
 * usage: keys VARIANT KEYS AMOUNT    (README.md lists the variants)
 */
#include "bench.h"

#include <malloc.h>

#define KEYS_A_NAME 1024

/* One object whose strings change, so that this program itself needs little memory for many keys. */
struct bench {
	struct evrec evrec;
	size_t keys, key;
	evrec_str name_at[KEYS_A_NAME], uid_at[KEYS_A_NAME];
	evrec_fields event;
};

static void step(struct bench *bench)
{
	evrec_reference *object = &bench->event.regarding;

	object->name = bench->name_at[bench->key / KEYS_A_NAME];
	object->uid = bench->uid_at[bench->key % KEYS_A_NAME];
	if (bench->evrec.b == NULL) {
		correlate(&bench->evrec, &bench->event);
	} else {
		record(&bench->evrec, NULL, object, MESSAGE);
	}
}

static void fill(struct bench *bench)
{
	for (bench->key = 0; bench->key < bench->keys; bench->key++) {
		step(bench);
		if (bench->evrec.b != NULL && bench->key % BATCH == 0) {
			evrec_broadcaster_poll(bench->evrec.b);
		}
	}
	bench->key = 0;
}

static void batch(void *ctx)
{
	struct bench *bench = ctx;
	size_t i;

	for (i = 0; i < BATCH; i++) {
		step(bench);
		/* A full-period generator: visits every key once a round, in an order that the processor cannot prefetch. */
		bench->key = (bench->key * 1664525 + 1013904223) % bench->keys;
	}
	if (bench->evrec.b != NULL) {
		evrec_broadcaster_poll(bench->evrec.b);
	}
}

/* An allocator for evrec_set_allocator. ctx: the sum of the usable sizes of all live blocks. */
static void *counting(void *ctx, void *block, size_t size)
{
	size_t *live = ctx;
	void *made;

	*live -= malloc_usable_size(block);
	if (size == 0) {
		free(block);
		return NULL;
	}
	made = realloc(block, size);
	*live += malloc_usable_size(made != NULL ? made : block);
	return made;
}

/* Prints the number of entries in the three caches, the bytes that each takes, and the bytes of its key's strings. */
static void print_memory(const struct bench *bench, size_t live)
{
	const evrec_fields *e = &bench->event;
	const evrec_reference *r = &e->regarding;
	const size_t object = e->component.len + e->host.len + r->kind.len + r->ns.len + r->name.len + r->uid.len +
	                      r->api_version.len + e->type.len;
	const size_t aggregate = object + e->reason.len + e->controller.len + e->instance.len;
	const size_t event = object + r->field_path.len + e->reason.len + e->note.len;
	evrec_correlator_stats stats;
	size_t entries;

	evrec_correlator_get_stats(bench->evrec.correlator, &stats);
	entries = stats.aggregates + stats.observed + stats.buckets;
	printf("%zu\t%.1f\t%.1f\n", entries, (double)live / (double)entries, (double)(object + aggregate + event) / 3);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	evrec_correlator_options options;
	size_t i, live = 0, events;
	bool memory;
	double spent;

	bench.keys = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	if (bench.keys == 0 || bench.keys > KEYS_A_NAME * KEYS_A_NAME) {
		die("usage: keys VARIANT KEYS AMOUNT");
	}
	for (i = 0; i < KEYS_A_NAME; i++) {
		bench.name_at[i] = name_of(i);
		bench.uid_at[i] = uid_of(i);
	}
	bench.event = event_of(&(evrec_reference){ 0 }, MESSAGE);
	bench.event.regarding = object_of(0);
	memory = strcmp(argv[3], "memory") == 0;
	if (memory) {
		evrec_set_allocator(counting, &live);
	}
	evrec_correlator_options_init(&options);
	options.lru_cache_size = bench.keys;
	options.burst_size = strcmp(argv[1], "limited") == 0 ? 1 : 1000000000;
	bench.evrec = evrec_open(strcmp(argv[1], "correlator") != 0, &options);
	fill(&bench);
	if (memory) {
		print_memory(&bench, live);
	} else {
		events = measure(batch, &bench, argv[3], 0, &spent);
		printf("%zu\t%.9f\n", events, spent);
	}
	evrec_close(&bench.evrec);
	return 0;
}
