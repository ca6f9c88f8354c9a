/* A sink pipeline: a recording call does a bounded part of pending work; counters in a forked child. */
#define _GNU_SOURCE

#include "stats_invariants.h"

#include <sys/wait.h>
#include <unistd.h>

static void refuse_unsent(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)ctx;
	(void)event;
	answer->unsent = true;
}

static unsigned drops; /* calls of on_drop */

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	(void)ctx;
	(void)event;
	(void)why;
	drops++;
}

struct host {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
};

static void open_host(struct host *host)
{
	static const evrec_sink_ops ops = { .create = refuse_unsent };
	evrec_broadcaster_options options;
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_sink_options_init(&common);
	common.limits.max_pending_bytes = 300000;
	common.limits.full = EVREC_DROP_OLDEST;
	host->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = host->clock;
	options.max_message_bytes = 262144;
	options.on_drop = on_drop;
	host->b = evrec_broadcaster_new(&options, NULL);
	host->r = evrec_recorder_new(
		host->b, &(evrec_recorder_options){ .component = EVREC_STR("operator"), .host = EVREC_STR("node-1") },
		NULL);
	sink = evrec_sink_new(&ops, NULL, &common, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(host->b, sink, NULL, NULL));
	evrec_sink_release(sink);
	drops = 0;
}

static void close_host(struct host *host)
{
	evrec_recorder_free(host->r);
	evrec_broadcaster_free(host->b);
	evrec_clock_release(host->clock);
}

static void record(struct host *host, unsigned i, size_t note_len)
{
	static char note[200000];
	char name[16];
	evrec_reference pod = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("Started"),
		                  .note = { note, note_len },
		                  .timestamp = EVREC_UNSET };

	memset(note, 'x', sizeof(note));
	(void)snprintf(name, sizeof(name), "p%u", i);
	pod.name = str_from(name);
	assert_int_equal(checked_emit(host->r, host->b, &emit), 0);
}

/* One large event evicts many. The calls of on_drop are spread over later recording calls, at most 8 each. */
static void test_recording_reports_few_drops_a_call(void **state)
{
	struct host host;
	uint64_t dropped;
	unsigned before;

	(void)state;
	open_host(&host);
	for (unsigned i = 0; i < 100; i++) {
		record(&host, i, 1000);
	}
	record(&host, 100, 200000);
	dropped = stats_check_equations(host.b).dropped[EVREC_CAUSE_QUEUE_FULL];
	assert_true(dropped >= 20);
	assert_int_equal(drops, 0);
	for (unsigned i = 101; i < 104; i++) {
		before = drops;
		record(&host, i, 10);
		assert_true(drops > before);
		assert_true(drops - before <= 8);
	}
	checked_poll(host.b);
	assert_int_equal(drops, stats_check_equations(host.b).dropped[EVREC_CAUSE_QUEUE_FULL]);
	close_host(&host);
}

/* Global, because the allocator below is called at any depth of a recording call. */
static evrec_broadcaster *forks; /* NULL: do not fork */
static unsigned hung, forked;

/* Forks at every allocation of a recording call, also while the outbox's lock is held. The child must not hang. */
static void *forking_realloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
		return NULL;
	}
	if (forks != NULL) {
		evrec_broadcaster *b = forks;
		evrec_sink_stats stats;
		int status = -1;
		pid_t child;

		forks = NULL;
		child = fork();
		if (child == 0) {
			(void)alarm(10);
			_exit(evrec_broadcaster_get_sink_stats(b, 1, &stats) && stats.received == 0 ? 0 : 1);
		}
		(void)waitpid(child, &status, 0);
		forked++;
		hung += status != 0;
		forks = b;
	}
	return realloc(block, size);
}

static void test_counters_in_a_child_do_not_hang(void **state)
{
	struct host host;

	(void)state;
	evrec_set_allocator(forking_realloc, NULL);
	open_host(&host);
	forks = host.b;
	record(&host, 1, 10);
	forks = NULL;
	close_host(&host);
	evrec_set_allocator(NULL, NULL);
	assert_true(forked >= 3);
	assert_int_equal(hung, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recording_reports_few_drops_a_call),
		cmocka_unit_test(test_counters_in_a_child_do_not_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
