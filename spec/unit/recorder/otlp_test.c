/* A broadcaster with an OTLP sink: flushes, ends, intervals, series, a spool, and lines that tell no secret. */
#include "http_server.h"
#include "stats_invariants.h"
#include "tmpdir.h"

#include "evrec_otlp.h"

#include <sys/socket.h>

#define TAKEN "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
#define SECRET "s3cret-of-the-header"

struct life {
	struct http_server server;
	evrec_otlp_options sink;
	evrec_broadcaster_options options;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	char endpoint[128];
};

static void prepare(struct life *life, const char *path)
{
	*life = (struct life){ .b = NULL };
	http_server_bind(&life->server, path);
	(void)snprintf(life->endpoint, sizeof(life->endpoint), "%s", life->server.url);
	evrec_otlp_options_init(&life->sink);
	life->sink.endpoint = str_from(life->endpoint);
	life->sink.encoding = EVREC_OTLP_JSON;
	life->sink.compression = EVREC_OTLP_NONE;
	life->sink.batch_delay = 3600 * EVREC_SECOND;
	life->sink.min_interval = 0;
	evrec_broadcaster_options_init(&life->options);
	life->options.drive = EVREC_DRIVE_POLL;
}

static void begin(struct life *life)
{
	const evrec_recorder_options source = { .component = EVREC_STR("operator"), .host = EVREC_STR("node-1") };
	evrec_error err = { 0 };
	evrec_sink *sink = evrec_sink_otlp(&life->sink, &err);

	assert_string_equal(err.message, "");
	life->b = evrec_broadcaster_new(&life->options, NULL);
	life->r = evrec_recorder_new(life->b, &source, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(life->b, sink, NULL, NULL));
	evrec_sink_release(sink);
}

static void end(struct life *life)
{
	evrec_broadcaster_free(life->b);
	evrec_recorder_free(life->r);
	evrec_clock_release(life->clock);
}

static void record(struct life *life, const char *name)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("Started"),
		                  .action = EVREC_STR("Starting"),
		                  .note = EVREC_STR("a note"),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(checked_emit(life->r, life->b, &emit), 0);
}

/* Polls until nothing is pending. */
static void poll_until_sent(struct life *life)
{
	const int64_t deadline = unit_mono() + SOON;

	do {
		assert_true(unit_mono() < deadline);
		checked_poll(life->b);
		(void)usleep(1000);
	} while (stats_check_equations(life->b).pending != 0);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
}

static unsigned records_in(const struct life *life, size_t request)
{
	return count(life->server.requests[request], "\"timeUnixNano\"");
}

static void test_a_flush_does_not_wait_for_the_batch(void **state)
{
	(void)state;
	for (int threadless = 0; threadless <= 1; threadless++) {
		struct life life;

		prepare(&life, "");
		life.options.drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO;
		http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
		begin(&life);
		record(&life, "web-0");
		record(&life, "web-1");
		checked_poll(life.b);
		assert_int_equal(http_server_requests(&life.server), 0);
		assert_int_equal(checked_flush(life.b, SOON), 0);
		assert_int_equal(http_server_requests(&life.server), 1);
		assert_int_equal(records_in(&life, 0), 2);
		/* The next events wait for a batch again. */
		record(&life, "web-2");
		checked_poll(life.b);
		assert_int_equal(stats_check_equations(life.b).pending, 1);
		assert_int_equal(checked_shutdown(life.b, SOON), 0);
		assert_int_equal(http_server_requests(&life.server), 2);
		end(&life);
		http_server_stop(&life.server);
	}
}

static void test_a_freed_broadcaster_does_not_wait_for_the_batch(void **state)
{
	struct life life;
	int64_t deadline = unit_mono() + SOON;

	(void)state;
	prepare(&life, "");
	life.options.drive = EVREC_DRIVE_AUTO;
	http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
	begin(&life);
	record(&life, "web-0");
	end(&life);
	while (http_server_requests(&life.server) == 0) {
		assert_true(unit_mono() < deadline);
		(void)usleep(1000);
	}
	http_server_stop(&life.server);
}

/* The child has a thread, which the end of the process waits for. */
static void test_exit_does_not_wait_for_the_batch(void **state)
{
	struct life life;
	pid_t child;

	(void)state;
	prepare(&life, "");
	life.options.drive = EVREC_DRIVE_AUTO;
	assert_int_equal(listen(life.server.listener, 1), 0); /* before the child connects */
	child = fork();
	if (child == 0) {
		begin(&life);
		record(&life, "web-0");
		exit(0);
	}
	http_server_start(&life.server, TURNS({ TURN_REPLY, TAKEN }));
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(http_server_requests(&life.server), 1);
	http_server_stop(&life.server);
}

static void test_a_later_record_has_the_count(void **state)
{
	struct life life;

	(void)state;
	prepare(&life, "");
	http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
	begin(&life);
	record(&life, "web-0");
	assert_int_equal(checked_flush(life.b, SOON), 0);
	record(&life, "web-0");
	record(&life, "web-0");
	assert_int_equal(checked_flush(life.b, SOON), 0);
	assert_int_equal(http_server_requests(&life.server), 2);
	assert_int_equal(records_in(&life, 1), 1);
	http_server_check_saw(&life.server, 0, "\"k8s.event.count\",\"value\":{\"intValue\":\"1\"}");
	http_server_check_saw(&life.server, 1, "\"k8s.event.count\",\"value\":{\"intValue\":\"3\"}");
	http_server_check_saw(&life.server, 1, "\"a note\"");
	end(&life);
	http_server_stop(&life.server);
}

static void test_records_of_an_event_are_a_minimum_interval_apart(void **state)
{
	struct life life;

	(void)state;
	prepare(&life, "");
	life.clock = evrec_clock_fake(T0);
	life.options.clock = life.clock;
	life.sink.batch_delay = 0;
	life.sink.min_interval = 60 * EVREC_SECOND;
	http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
	begin(&life);
	for (int second = 0; second < 60; second += 10) {
		evrec_clock_set(life.clock, T0 + second * EVREC_SECOND);
		record(&life, "web-0");
		poll_until_sent(&life);
	}
	assert_int_equal(http_server_requests(&life.server), 1);
	assert_int_equal(stats_check_equations(life.b).counted, 5);
	evrec_clock_set(life.clock, T0 + 60 * EVREC_SECOND);
	poll_until_sent(&life);
	assert_int_equal(http_server_requests(&life.server), 2);
	http_server_check_saw(&life.server, 1, "\"k8s.event.count\",\"value\":{\"intValue\":\"6\"}");
	end(&life);
	http_server_stop(&life.server);
}

/* Half of max_age ends the wait for a batch; and a record that the receiver refuses until then is dropped. */
static void test_a_record_is_dropped_at_max_age(void **state)
{
	const int64_t deadline = unit_mono() + SOON;
	struct life life;

	(void)state;
	prepare(&life, "");
	life.clock = evrec_clock_fake(T0);
	life.options.clock = life.clock;
	life.sink.common.limits.max_age = 10 * EVREC_SECOND;
	http_server_start(&life.server, TURNS({ TURN_REPLY, HTTP_REPLY("503 Unavailable", "", "") }));
	begin(&life);
	record(&life, "web-0");
	record(&life, "web-0");
	evrec_clock_set(life.clock, T0 + 5 * EVREC_SECOND - 1);
	checked_poll(life.b);
	assert_int_equal(http_server_requests(&life.server), 0);
	evrec_clock_set(life.clock, T0 + 5 * EVREC_SECOND);
	do {
		assert_true(unit_mono() < deadline);
		checked_poll(life.b);
		(void)usleep(1000);
	} while (http_server_requests(&life.server) == 0);
	assert_int_equal(stats_check_equations(life.b).pending, 2);
	evrec_clock_set(life.clock, T0 + 10 * EVREC_SECOND + 1);
	poll_until_sent(&life);
	assert_int_equal(stats_check_equations(life.b).dropped[EVREC_CAUSE_EXPIRED], 2);
	assert_int_equal(http_server_requests(&life.server), 1);
	end(&life);
	http_server_stop(&life.server);
}

static void test_a_series_is_told_as_it_begins_and_ends(void **state)
{
	struct life life;

	(void)state;
	prepare(&life, "");
	life.clock = evrec_clock_fake(T0);
	life.options.clock = life.clock;
	life.sink.common.correlate = EVREC_CORRELATE_SERIES;
	life.sink.batch_delay = 0;
	http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
	begin(&life);
	record(&life, "web-0");
	assert_int_equal(checked_flush(life.b, SOON), 0);
	record(&life, "web-0");
	assert_int_equal(checked_flush(life.b, SOON), 0);
	assert_int_equal(http_server_requests(&life.server), 2);
	http_server_check_saw(&life.server, 0, "\"k8s.event.count\",\"value\":{\"intValue\":\"1\"}");
	http_server_check_saw(&life.server, 1, "\"k8s.event.count\",\"value\":{\"intValue\":\"2\"}");
	evrec_clock_set(life.clock, T0 + 3600 * EVREC_SECOND);
	checked_poll(life.b);
	assert_int_equal(checked_flush(life.b, SOON), 0);
	assert_int_equal(http_server_requests(&life.server), 3);
	http_server_check_saw(&life.server, 1, "\"Ongoing\"");
	http_server_check_saw(&life.server, 2, "\"Finished\"");
	end(&life);
	http_server_stop(&life.server);
}

static void test_a_batch_that_a_process_could_not_send_is_sent_by_the_next_one(void **state)
{
	struct http_server server;
	struct life first, second;

	prepare(&first, "");
	first.sink.common.spool = str_from(tmpdir_path(*state, "spool"));
	begin(&first);
	record(&first, "web-0");
	record(&first, "web-1");
	record(&first, "web-1");
	assert_int_equal(evrec_broadcaster_shutdown(first.b, 0, NULL), EVREC_ETIMEOUT);
	assert_int_equal(stats_check_equations(first.b).spooled, 3);
	end(&first);
	prepare(&second, "");
	second.sink.common.spool = str_from(tmpdir_path(*state, "spool"));
	http_server_start(&second.server, TURNS({ TURN_KEEP, TAKEN }));
	begin(&second);
	assert_int_equal(checked_flush(second.b, SOON), 0);
	assert_int_equal(stats_check_equations(second.b).restored, 3);
	assert_int_equal(http_server_requests(&second.server), 1);
	assert_int_equal(records_in(&second, 0), 2);
	http_server_check_saw(&second.server, 0, "\"k8s.event.count\",\"value\":{\"intValue\":\"2\"}");
	assert_int_equal(checked_shutdown(second.b, SOON), 0);
	end(&second);
	server = first.server;
	http_server_start(&server, TURNS({ TURN_KEEP, TAKEN }));
	http_server_stop(&server);
	http_server_stop(&second.server);
}

/* ---- a process leaves records in a spool: at its end, or killed, in rows or in the journal alone ---- */

#define FIRST (T0 + 123456789)
#define SECOND (FIRST + EVREC_SECOND + 1)

enum leaves { AT_THE_END, IN_ROWS, IN_THE_JOURNAL, LEAVES };

static const char *spool_of(void *state, enum leaves how, bool series)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "spool-%d-%d", (int)how, series);
	return tmpdir_path(state, name);
}

static void open_spooled(struct life *life, const char *spool, bool series, int64_t now)
{
	prepare(life, "");
	life->clock = evrec_clock_fake(now);
	life->options.clock = life->clock;
	life->sink.common.spool = str_from(spool);
	life->sink.common.correlate = series ? EVREC_CORRELATE_SERIES : EVREC_CORRELATE_RECORD;
}

static void leave(const char *spool, enum leaves how, bool series)
{
	struct life life;

	open_spooled(&life, spool, series, FIRST);
	life.sink.batch_delay = how == IN_ROWS ? 0 : life.sink.batch_delay;
	life.sink.common.spool_after = 0;
	life.sink.common.spool_journal = how == IN_THE_JOURNAL;
	begin(&life);
	record(&life, "web-0");
	checked_poll(life.b);
	evrec_clock_set(life.clock, SECOND);
	record(&life, "web-0");
	record(&life, "web-1");
	evrec_clock_set(life.clock, SECOND + EVREC_SECOND);
	checked_poll(life.b);
	if (how == AT_THE_END) {
		(void)evrec_broadcaster_shutdown(life.b, 0, NULL);
	}
	(void)kill(getpid(), SIGKILL);
}

static void test_a_record_from_a_spool_has_the_time_of_its_event(void **state)
{
	for (int i = 0; i < 2 * LEAVES; i++) {
		const pid_t child = fork();

		if (child == 0) {
			leave(spool_of(*state, (enum leaves)(i / 2), i % 2 != 0), (enum leaves)(i / 2), i % 2 != 0);
		}
		assert_true(WIFSIGNALED(unit_wait(child)));
	}
	for (int i = 0; i < 2 * LEAVES; i++) {
		struct life life;

		open_spooled(&life, spool_of(*state, (enum leaves)(i / 2), i % 2 != 0), i % 2 != 0,
		             T0 + 100 * EVREC_SECOND);
		http_server_start(&life.server, TURNS({ TURN_KEEP, TAKEN }));
		begin(&life);
		assert_int_equal(checked_flush(life.b, SOON), 0);
		assert_int_equal(http_server_requests(&life.server), 1);
		assert_int_equal(records_in(&life, 0), 2);
		http_server_check_saw(&life.server, 0, "\"k8s.event.count\",\"value\":{\"intValue\":\"2\"}");
		assert_int_equal(count(life.server.requests[0], "\"timeUnixNano\":\"1700000001123456790\""), 2);
		end(&life);
		http_server_stop(&life.server);
	}
}

/* An event's note and a receiver's answer may hold it. */
static void test_no_line_tells_the_value_of_a_header(void **state)
{
	const evrec_pair header = { EVREC_STR("Authorization"), EVREC_STR("Bearer " SECRET) };
	char line[EVREC_LINE_SIZE];
	struct life life;
	unsigned lines = 0;

	(void)state;
	prepare(&life, "");
	life.options.loud = true;
	life.sink.headers = (evrec_map){ &header, 1 };
	http_server_start(&life.server, TURNS({ TURN_REPLY, HTTP_REPLY("403 Forbidden", "", "not " SECRET) }));
	begin(&life);
	record(&life, "a-" SECRET);
	(void)evrec_broadcaster_flush(life.b, SOON, NULL);
	assert_int_equal(stats_check_equations(life.b).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	while (evrec_broadcaster_next_line(life.b, true, line)) {
		assert_null(strstr(line, SECRET));
		lines++;
	}
	assert_true(lines != 0);
	end(&life);
	http_server_stop(&life.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: TSan takes threads that have ended before a fork for leaks of the child. */
		cmocka_unit_test(test_exit_does_not_wait_for_the_batch),
		TMPDIR_TEST(test_a_record_from_a_spool_has_the_time_of_its_event),
		cmocka_unit_test(test_a_flush_does_not_wait_for_the_batch),
		cmocka_unit_test(test_a_freed_broadcaster_does_not_wait_for_the_batch),
		cmocka_unit_test(test_a_later_record_has_the_count),
		cmocka_unit_test(test_records_of_an_event_are_a_minimum_interval_apart),
		cmocka_unit_test(test_a_record_is_dropped_at_max_age),
		cmocka_unit_test(test_a_series_is_told_as_it_begins_and_ends),
		TMPDIR_TEST(test_a_batch_that_a_process_could_not_send_is_sent_by_the_next_one),
		cmocka_unit_test(test_no_line_tells_the_value_of_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
