/*
 * Every allocation of evrec's fails once: a trace is written and replayed. Every event is in the file, or counted as dropped.
 * jansson keeps its own memory: version 2.14 traps if it has none while it reads a string.
 */
#include "alloc_failure.h"
#include "no_memory_recorder.h"
#include "tmpdir.h"

#include "base/file.h"
#include "evrec_read.h"

/* Shared by all tests of the group; global, because a scenario has no argument. */
static char path[512];

static bool by_reason(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	*key = event->reason;
	return true;
}

static void write_trace(void)
{
	struct no_memory_recorder f = { 0 };
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_watch *watch = NULL;
	evrec_sink_stats stats;
	evrec_error err = { 0 };

	(void)unlink(path);
	evrec_broadcaster_options_init(&options);
	options.drive = EVREC_DRIVE_POLL;
	evrec_correlator_options_init(&correlator);
	correlator.spam_key_func = by_reason;
	alloc_failure_arm();
	if (no_memory_recorder_open(&f, &options)) {
		watch = evrec_broadcaster_start_trace(f.b, str_from(path), 1 << 20, &correlator, &err);
		alloc_failure_check_error(watch != NULL, &err);
	}
	if (watch != NULL) {
		for (int i = 0; i < 3; i++) {
			(void)no_memory_recorder_record(&f, i == 1 ? EVREC_STR("a") : EVREC_STR("b"), EVREC_STR("m"),
			                                &err);
			evrec_broadcaster_poll(f.b);
		}
	}
	alloc_failure_ignore();
	alloc_failure_disarm();
	if (watch != NULL) {
		evrec_broadcaster_poll(f.b);
		if (evrec_watch_get_sink_stats(watch, &stats)) {
			assert_int_equal(stats.pending, 0);
		}
	}
	evrec_watch_free(watch);
	no_memory_recorder_close(&f);
}

static bool count(void *ctx, const evrec_replayed_group *group)
{
	*(uint64_t *)ctx += group->occurrences;
	return true;
}

#define TRACE                                                                                                          \
	"{\"evrec_trace\":1}\n{\"id\":1,\"t\":1,\"event\":{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"a\"},"      \
	"\"reason\":\"R\"},\"keys\":{\"aggregate\":\"y\",\"local\":\"z\",\"spam\":\"x\"}}\n{\"id\":1,\"t\":2}\n{"      \
	"\"id\""

static void replay(void)
{
	evrec_replay_variant variants[2];
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	evrec_error err = { 0 };
	uint64_t occurrences = 0;
	evrec_fields event;
	evrec_replay *r;
	int code;

	evrec_replay_variant_init(&variants[0]);
	variants[1] = variants[0];
	variants[1].by_series = true;
	variants[0].spam_key = EVREC_STR("metadata.labels.app");
	evrec_fields_init(&event);
	event.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("a") };
	alloc_failure_arm();
	r = evrec_replay_new(variants, 2, &err);
	if (r != NULL) {
		code = evrec_replay_feed(r, EVREC_STR(TRACE), &err);
		code = code == 0 ? evrec_replay_add(r, &event, EVREC_SECOND, &err) : code;
		code = code == 0 ? evrec_replay_end(r, &err) : code;
		if (code == 0) {
			evrec_replay_get_trace(r, &trace);
			evrec_replay_get_variant(r, 0, &result);
			evrec_replay_each(r, count, &occurrences);
			assert_int_equal(trace.occurrences, 3);
			assert_int_equal(result.tally.created + result.tally.patched, 3);
			assert_int_equal(occurrences, 3);
		}
		assert_true(code == 0 || code == EVREC_ENOMEM);
	}
	alloc_failure_ignore();
	alloc_failure_disarm();
	evrec_replay_free(r);
}

static void test_traces_lose_nothing_uncounted(void **state)
{
	(void)snprintf(path, sizeof(path), "%s", tmpdir_path(*state, "trace"));
	alloc_failure_run(write_trace, 20);
}

static void test_replays_are_whole_or_fail(void **state)
{
	(void)state;
	alloc_failure_run(replay, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_traces_lose_nothing_uncounted),
		cmocka_unit_test(test_replays_are_whole_or_fail),
	};

	return cmocka_run_group_tests_name("memory: traces and replays", tests, NULL, NULL);
}
