/* A recorder with a Kubernetes sink and a spool: requests for events of an earlier process. */
#define _GNU_SOURCE

#include "http_server.h"
#include "spool_file.h"
#include "stats_invariants.h"

#include "event/event.h"

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"kind\":\"Event\"}"
#define TAKEN "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}"

struct life {
	evrec_broadcaster *b;
	evrec_recorder *r;
	char errors[4096], dropped[4096]; /* a line "object: cause" each */
	unsigned drops;
};

static void add_line(char lines[4096], evrec_str name, const char *text)
{
	size_t len = strlen(lines);

	(void)snprintf(lines + len, 4096 - len, "%.*s: %s\n", (int)name.len, name.data, text);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	add_line(((struct life *)ctx)->errors, str_from(name), message);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct life *life = ctx;

	add_line(life->dropped, evrec_event_fields(event)->regarding.name, why);
	life->drops++;
}

static void begin_limited(struct life *life, int port, const char *spool, bool threadless, const evrec_limits *limits)
{
	evrec_broadcaster_options options;
	evrec_kubernetes_options sink_options;
	evrec_error err = { 0 };
	evrec_sink *sink;
	char url[64];

	*life = (struct life){ 0 };
	evrec_broadcaster_options_init(&options);
	options.drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = life;
	life->b = evrec_broadcaster_new(&options, NULL);
	life->r = evrec_recorder_new(
		life->b, &(evrec_recorder_options){ .component = EVREC_STR("operator"), .host = EVREC_STR("node-1") },
		NULL);
	evrec_kubernetes_options_init(&sink_options);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	sink_options.server = str_from(url);
	sink_options.common.spool = str_from(spool);
	sink_options.common.limits = *limits;
	sink_options.max_in_flight = 1; /* the server answers one after the other */
	sink = evrec_sink_kubernetes(&sink_options, &err);
	assert_string_equal(err.message, "");
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(life->b, sink, NULL, NULL));
	evrec_sink_release(sink);
}

static void begin(struct life *life, int port, const char *spool, bool threadless)
{
	evrec_limits limits;

	evrec_limits_init(&limits);
	begin_limited(life, port, spool, threadless, &limits);
}

static void end(struct life *life)
{
	evrec_broadcaster_free(life->b);
	evrec_recorder_free(life->r);
}

/* The spool is empty. */
static void assert_nothing_left(const struct http_server *server, const char *spool, bool threadless)
{
	struct life life;

	begin(&life, server->port, spool, threadless);
	assert_int_equal(checked_shutdown(life.b, SOON), 0);
	assert_int_equal(stats_check_equations(life.b).restored, 0);
	end(&life);
}

static void record_as(struct life *life, const char *name, unsigned times, const char *type, int64_t timestamp)
{
	const evrec_pair pair = { EVREC_STR("team"), EVREC_STR("blue \"x\"") };
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = EVREC_STR("shop") };
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("node-1") };
	const evrec_emit emit = {
		.regarding = &pod,
		.related = &node,
		.type = str_from(type),
		.reason = EVREC_STR("BackOff"),
		.action = EVREC_STR("Restarting"),
		.note = EVREC_STR("a NUL \0, a \xe2\x82\xac, a \\"),
		.annotations = { &pair, 1 },
		.labels = { &pair, 1 },
		.timestamp = timestamp,
	};

	while (times-- > 0) {
		assert_int_equal(checked_emit(life->r, life->b, &emit), 0);
	}
}

static void record(struct life *life, const char *name, unsigned times)
{
	record_as(life, name, times, "Warning", EVREC_UNSET);
}

/* The number of the one of two requests that contains `text`. */
static size_t find_request(struct http_server *server, const char *text)
{
	return strstr(server->requests[0], text) != NULL ? 0 : 1;
}

/* The text of a request between `from` and `to`. The caller frees it. */
static char *text_between(const char *request, const char *from, const char *to)
{
	const char *start = strstr(request, from), *stop;

	assert_non_null(start);
	start += strlen(from);
	stop = strstr(start, to);
	assert_non_null(stop);
	return strndup(start, (size_t)(stop - start));
}

static void test_events_of_an_outage_are_written_by_the_next_process(void **state)
{
	static const struct http_turn turns[] = { { TURN_KEEP, CREATED } };
	const char *spool = tmpdir_path(*state, "spool");
	evrec_sink_stats s;
	struct http_server server;
	struct life life;
	size_t web0;

	for (int threadless = 0; threadless <= 1; threadless++) {
		http_server_bind(&server, "");
		begin(&life, server.port, spool, threadless != 0);
		record(&life, "web-0", 3);
		record(&life, "web-1", 1);
		assert_int_equal(checked_shutdown(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
		s = stats_check_equations(life.b);
		assert_true(s.spooled == 4 && s.created == 0 && life.drops == 0);
		assert_int_equal(checked_shutdown(life.b, 0), EVREC_ETIMEOUT);
		end(&life);
		http_server_start(&server, turns, 1);
		begin(&life, server.port, spool, threadless != 0);
		/* No event has to be recorded for that. */
		assert_int_equal(checked_flush(life.b, SOON), 0);
		s = stats_check_equations(life.b);
		assert_true(s.restored == 4 && s.received == 4 && s.created == 2 && s.coalesced == 2);
		assert_int_equal(checked_shutdown(life.b, SOON), 0);
		assert_string_equal(life.errors, "");
		end(&life);
		assert_int_equal(http_server_requests(&server), 2);
		web0 = find_request(&server, "\"name\":\"web-0.");
		http_server_check_saw(&server, web0, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
		http_server_check_saw(&server, web0, "\"name\":\"web-0.");
		http_server_check_saw(&server, web0, "\"count\":3");
		http_server_check_saw(&server, web0, "\"message\":\"a NUL \\u0000, a \xe2\x82\xac, a \\\\\"");
		http_server_check_saw(&server, web0, "\"annotations\":{\"team\":\"blue \\\"x\\\"\"}");
		http_server_check_saw(&server, web0, "\"related\":{\"kind\":\"Node\",\"name\":\"node-1\"}");
		http_server_check_saw(&server, 1 - web0, "\"name\":\"web-1.");
		assert_nothing_left(&server, spool, threadless != 0);
		http_server_stop(&server);
	}
}

/* The server received the POST and did not answer: the next process sends it again, and the conflict means success. */
static void test_restored_post_that_conflicts_is_success(void **state)
{
	static const struct http_turn turns[] = { { TURN_MUTE, NULL }, { TURN_KEEP, TAKEN }, { TURN_KEEP, CREATED } };
	const char *spool = tmpdir_path(*state, "spool");
	char *first, *again, *patched;
	evrec_sink_stats s;
	struct http_server server;
	struct life life;

	http_server_bind(&server, "");
	http_server_start(&server, turns, 3);
	begin(&life, server.port, spool, false);
	record(&life, "web-0", 1);
	while (http_server_requests(&server) == 0) {
		usleep(1000);
	}
	record(&life, "web-0", 2); /* a follow-up */
	(void)checked_shutdown(life.b, EVREC_SECOND / 20);
	assert_int_equal(stats_check_equations(life.b).spooled, 3);
	end(&life);
	begin(&life, server.port, spool, false);
	assert_int_equal(checked_flush(life.b, SOON), 0);
	s = stats_check_equations(life.b);
	assert_true(s.created == 1 && s.patched == 1 && s.coalesced == 1);
	assert_int_equal(checked_shutdown(life.b, SOON), 0);
	end(&life);
	assert_int_equal(http_server_requests(&server), 3);
	first = text_between(server.requests[0], "\"metadata\":{\"name\":\"", "\"");
	again = text_between(server.requests[1], "\"metadata\":{\"name\":\"", "\"");
	patched = text_between(server.requests[2], "PATCH /api/v1/namespaces/shop/events/", " ");
	assert_string_equal(first, again);
	assert_string_equal(first, patched);
	http_server_check_saw(&server, 2, "{\"count\":3,\"lastTimestamp\":\"");
	http_server_stop(&server);
	free(first);
	free(again);
	free(patched);
}

static void test_restored_count_is_a_patch(void **state)
{
	static const struct http_turn turns[] = { { TURN_KEEP, CREATED }, { TURN_MUTE, NULL }, { TURN_KEEP, CREATED } };
	const char *spool = tmpdir_path(*state, "spool");
	struct http_server server;
	struct life life;

	http_server_bind(&server, "");
	http_server_start(&server, turns, 3);
	begin(&life, server.port, spool, false);
	record(&life, "web-0", 1);
	assert_int_equal(checked_flush(life.b, SOON), 0);
	record(&life, "web-0", 1);
	(void)checked_shutdown(life.b, EVREC_SECOND / 20);
	assert_int_equal(stats_check_equations(life.b).spooled, 1);
	end(&life);
	begin(&life, server.port, spool, false);
	assert_int_equal(checked_shutdown(life.b, SOON), 0);
	assert_true(stats_check_equations(life.b).patched == 1 && stats_check_equations(life.b).restored == 1);
	end(&life);
	http_server_check_saw(&server, 2, "PATCH /api/v1/namespaces/shop/events/web-0.");
	http_server_check_saw(&server, 2, "{\"count\":2,");
	http_server_stop(&server);
}

/* max_age counts from the recording call, not from the timestamp of an event of the past. */
static void test_restored_events_expire_by_recording_time(void **state)
{
	static const struct http_turn turns[] = { { TURN_KEEP, CREATED } };
	const int64_t past = evrec_clock_now(evrec_clock_real()) - 7200 * EVREC_SECOND;
	const char *spool = tmpdir_path(*state, "spool");
	evrec_sink_stats s;
	struct http_server server;
	struct life life;

	for (int threadless = 0; threadless <= 1; threadless++) {
		http_server_bind(&server, "");
		begin(&life, server.port, spool, threadless != 0);
		record_as(&life, "old", 2, "Normal", EVREC_UNSET);
		record_as(&life, "young", 1, "Normal", past);
		assert_int_equal(checked_shutdown(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
		assert_int_equal(stats_check_equations(life.b).spooled, 3);
		end(&life);
		spool_file_exec(spool_file_in(spool),
		                "UPDATE writes SET last = last - 3660 * 1000000000 WHERE event LIKE '%\"old\"%'");
		http_server_start(&server, turns, 1);
		begin(&life, server.port, spool, threadless != 0);
		assert_int_equal(checked_flush(life.b, SOON), EVREC_ELOST);
		s = stats_check_equations(life.b);
		assert_true(s.restored == 3 && s.created == 1 && s.dropped[EVREC_CAUSE_EXPIRED] == 2);
		assert_string_equal(life.dropped, "old: expired\n");
		assert_int_equal(checked_shutdown(life.b, SOON), 0);
		assert_string_equal(life.errors, "");
		end(&life);
		assert_int_equal(http_server_requests(&server), 1);
		http_server_check_saw(&server, 0, "\"name\":\"young.");
		assert_nothing_left(&server, spool, threadless != 0);
		http_server_stop(&server);
	}
}

/* A restored event keeps its importance, by its type. */
static void test_restored_warning_is_not_evicted(void **state)
{
	const char *spool = tmpdir_path(*state, "spool");
	struct http_server server;
	evrec_limits limits;
	struct life life;

	http_server_bind(&server, ""); /* the server is not started */
	begin(&life, server.port, spool, true);
	record_as(&life, "warning", 1, "Warning", EVREC_UNSET);
	assert_int_equal(checked_shutdown(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
	end(&life);
	evrec_limits_init(&limits);
	limits.max_pending = 2;
	limits.full = EVREC_DROP_OLDEST;
	begin_limited(&life, server.port, spool, true, &limits);
	while (life.errors[0] == '\0') {
		checked_poll(life.b);
	}
	assert_int_equal(stats_check_equations(life.b).restored, 1);
	/* The connection was refused, and the write backs off: without a poll it is not retried. */
	record_as(&life, "normal", 1, "Normal", EVREC_UNSET);
	record_as(&life, "another", 1, "Normal", EVREC_UNSET);
	record_as(&life, "new", 1, "Warning", EVREC_UNSET);
	record_as(&life, "last", 1, "Normal", EVREC_UNSET);
	assert_string_equal(life.dropped, "normal: queue_full\nanother: queue_full\nlast: queue_full\n");
	assert_int_equal(checked_shutdown(life.b, 0), EVREC_ELOST);
	assert_int_equal(stats_check_equations(life.b).spooled, 2);
	end(&life);
	(void)close(server.listener);
}

/* Neither waits for the other, and each keeps what it could not write. */
static void test_two_sinks_share_a_spool(void **state)
{
	const char *spool = tmpdir_path(*state, "spool");
	struct life first, second;
	struct http_server server;

	http_server_bind(&server, ""); /* the server is not started */
	begin(&first, server.port, spool, false);
	begin(&second, server.port, spool, true);
	record(&first, "web-0", 1);
	record(&second, "web-1", 2);
	assert_int_equal(checked_shutdown(first.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
	assert_int_equal(checked_shutdown(second.b, 0), EVREC_ETIMEOUT);
	assert_null(strstr(first.errors, "spool"));
	assert_null(strstr(second.errors, "spool"));
	assert_int_equal(stats_check_equations(first.b).spooled, 1);
	assert_true(stats_check_equations(second.b).spooled >= 2);
	end(&first);
	end(&second);
	assert_true(spool_file_count(spool) >= 1);
	(void)close(server.listener);
}

static void test_spool_option_is_checked(void **state)
{
	evrec_kubernetes_options options;
	evrec_error err = { 0 };

	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("http://127.0.0.1:1");
	options.common.spool = EVREC_STR("a\0b");
	assert_null(evrec_sink_kubernetes(&options, &err));
	assert_string_equal(err.message, "spool: must be the name of a folder");
	/* The file is created when the sink is first used. */
	options.common.spool = str_from(tmpdir_path(*state, "spool"));
	evrec_sink_release(evrec_sink_kubernetes(&options, &err));
	assert_int_equal(access(tmpdir_path(*state, "spool"), F_OK), -1);
}

static void test_event_survives_json(void **state)
{
	static const evrec_str broken[] = { { NULL, 0 }, { "{", 1 }, { "[]", 2 }, { "{\"metadata\":[]}", 15 } };
	const evrec_pair pairs[] = { { EVREC_STR("a"), EVREC_STR("") }, { EVREC_STR("b"), EVREC_STR("\n") } };
	struct buf before = { 0 }, after = { 0 };
	evrec_fields fields;
	evrec_event *event;

	(void)state;
	evrec_fields_init(&fields);
	fields.name = EVREC_STR("web-0.1");
	fields.ns = EVREC_STR("shop");
	fields.resource_version = EVREC_STR("7");
	fields.labels = fields.annotations = (evrec_map){ pairs, 2 };
	fields.regarding = fields.related = (evrec_reference){
		EVREC_STR("Pod"), EVREC_STR("v1"), EVREC_STR("web-0"),  EVREC_STR("shop"),
		EVREC_STR("u-1"), EVREC_STR("6"),  EVREC_STR("spec.x"),
	};
	fields.type = EVREC_STR("Normal");
	fields.reason = EVREC_STR("R");
	fields.action = EVREC_STR("A");
	fields.note = EVREC_STR("a \0 b");
	fields.component = fields.controller = EVREC_STR("c");
	fields.host = fields.instance = EVREC_STR("h");
	fields.first = T0;
	fields.last = T0 + EVREC_SECOND;
	fields.event_time = T0 + 123456000;
	fields.count = 42;
	fields.series_count = 3;
	fields.series_last = T0 + 5000;
	json_event(&before, &fields, EVREC_CORE_V1);
	event = event_from_json(buf_str(&before));
	assert_non_null(event);
	json_event(&after, evrec_event_fields(event), EVREC_CORE_V1);
	assert_string_equal(buf_cstr(&after), buf_cstr(&before));
	evrec_event_release(event);
	buf_free(&before);
	buf_free(&after);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_null(event_from_json(broken[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_events_of_an_outage_are_written_by_the_next_process),
		TMPDIR_TEST(test_restored_post_that_conflicts_is_success),
		TMPDIR_TEST(test_restored_count_is_a_patch),
		TMPDIR_TEST(test_restored_events_expire_by_recording_time),
		TMPDIR_TEST(test_restored_warning_is_not_evicted),
		TMPDIR_TEST(test_two_sinks_share_a_spool),
		TMPDIR_TEST(test_spool_option_is_checked),
		TMPDIR_TEST(test_event_survives_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
