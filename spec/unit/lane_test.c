/* A recording call does little of what others left to do; and its books in a forked child. */
#define _GNU_SOURCE

#include "books.h"

#include <sys/wait.h>
#include <unistd.h>

static void never(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)ctx;
	(void)event;
	answer->unsent = true;
}

static unsigned drops;

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
	static const evrec_sink_ops ops = { .create = never };
	evrec_broadcaster_options options;
	evrec_limits limits;
	evrec_sink *sink;

	evrec_limits_init(&limits);
	limits.max_pending_bytes = 300000;
	limits.full = EVREC_DROP_OLDEST;
	host->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = host->clock;
	options.max_message_bytes = 262144;
	options.on_drop = on_drop;
	host->b = evrec_broadcaster_new(&options, NULL);
	host->r = evrec_recorder_new(host->b, EVREC_STR("operator"), EVREC_STR("node-1"), NULL);
	sink = evrec_sink_new(&ops, NULL, &limits, NULL);
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
	const evrec_emit what = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("Started"),
		                  .note = { note, note_len },
		                  .timestamp = EVREC_UNSET };

	memset(note, 'x', sizeof(note));
	(void)snprintf(name, sizeof(name), "p%u", i);
	pod.name = str_from(name);
	assert_int_equal(emit(host->r, host->b, &what), 0);
}

/* One large event drives out many: the calls after it share the telling. */
static void test_what_others_left(void **state)
{
	struct host host;
	uint64_t dropped;
	unsigned told;

	(void)state;
	open_host(&host);
	for (unsigned i = 0; i < 100; i++) {
		record(&host, i, 1000);
	}
	record(&host, 100, 200000);
	dropped = check_books(host.b).dropped[EVREC_CAUSE_QUEUE_FULL];
	assert_true(dropped >= 20);
	assert_int_equal(drops, 0);
	for (unsigned i = 101; i < 104; i++) {
		told = drops;
		record(&host, i, 10);
		assert_true(drops > told);
		assert_true(drops - told <= 8);
	}
	poll_once(host.b);
	assert_int_equal(drops, check_books(host.b).dropped[EVREC_CAUSE_QUEUE_FULL]);
	close_host(&host);
}

static evrec_broadcaster *forks;
static unsigned hung, forked;

/* Every allocation of a recording call forks: also those under the outbox's lock, which the child finds held. */
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
			_exit(evrec_broadcaster_get_sink_stats(b, 0, &stats) && stats.received == 0 ? 0 : 1);
		}
		(void)waitpid(child, &status, 0);
		forked++;
		hung += status != 0;
		forks = b;
	}
	return realloc(block, size);
}

static void test_stats_in_a_child(void **state)
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
		cmocka_unit_test(test_what_others_left),
		cmocka_unit_test(test_stats_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
