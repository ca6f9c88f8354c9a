/* A worker whose ledger is full, with EVREC_DROP_OLDEST: on_drop gets the event that makes room, with all that is known of it. */
#include "unit.h"

#include <unistd.h>

#include "recorder/broadcaster.h"

static char dropped[64], why[32];
static unsigned drops;

static void on_drop(void *ctx, const evrec_event *event, const char *cause)
{
	const evrec_str note = evrec_event_fields(event)->note;

	(void)ctx;
	drops++;
	(void)snprintf(dropped, sizeof(dropped), "%.*s", (int)note.len, note.data);
	(void)snprintf(why, sizeof(why), "%s", cause);
}

static void record(evrec_recorder *r, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = str_from(note);
	assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
}

/* Of two sinks, the second has the option `full`. */
static evrec_broadcaster *begin(enum evrec_overflow full)
{
	evrec_broadcaster_options options;
	evrec_sink_options common;
	evrec_broadcaster *b;
	char share[64];

	drops = 0;
	dropped[0] = '\0';
	(void)snprintf(share, sizeof(share), "@evrec-share-full-%ld", (long)getpid());
	evrec_broadcaster_options_init(&options);
	options.share = str_from(share);
	options.share_client_only = true; /* nobody writes */
	options.drive = EVREC_DRIVE_POLL;
	options.on_drop = on_drop;
	b = evrec_broadcaster_new(&options, NULL);
	assert_non_null(b);
	evrec_sink_options_init(&common);
	common.limits.max_pending = 2;
	common.limits.full = EVREC_DROP_OLDEST;
	for (unsigned i = 0; i < 2; i++) {
		evrec_sink *sink = evrec_sink_file(EVREC_STR("/dev/null"), &common, NULL);
		evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);

		assert_non_null(watch);
		evrec_watch_free(watch);
		evrec_sink_release(sink);
		common.limits.full = full;
	}
	return b;
}

static void check(enum evrec_overflow full, const char *expected, unsigned occurrences)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_broadcaster *b = begin(full);
	evrec_recorder *r = evrec_recorder_new(b, &source, NULL);
	evrec_sink_stats stats;

	record(r, "a");
	record(r, "a");
	record(r, "b");
	record(r, "c");
	assert_int_equal(drops, 1);
	assert_string_equal(dropped, expected);
	assert_string_equal(why, "queue_full");
	for (size_t number = 1; number <= 2; number++) {
		assert_true(evrec_broadcaster_get_sink_stats(b, number, &stats));
		assert_int_equal(stats.received, 4);
		assert_int_equal(stats.dropped[EVREC_CAUSE_QUEUE_FULL], occurrences);
		assert_int_equal(stats.pending, 4 - occurrences);
	}
	evrec_recorder_free(r);
	evrec_broadcaster_free(b);
}

static void test_oldest_is_told(void **state)
{
	(void)state;
	check(EVREC_DROP_OLDEST, "a", 2);
}

/* Sinks that differ: a new event is dropped. */
static void test_sinks_that_differ(void **state)
{
	(void)state;
	check(EVREC_DROP_NEWEST, "c", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_is_told),
		cmocka_unit_test(test_sinks_that_differ),
	};

	return cmocka_run_group_tests_name("share_full", tests, NULL, NULL);
}
