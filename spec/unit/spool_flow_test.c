/* Events from one process to the next: what an API server sees of those that it was too late for. */
#define _GNU_SOURCE

#include "books.h"
#include "http_server.h"
#include "spool_file.h"

#include "event/event.h"

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"kind\":\"Event\"}"
#define TAKEN "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}"
#define SOON (20 * EVREC_SECOND)

struct life {
	evrec_broadcaster *b;
	evrec_recorder *r;
	char errors[4096], dropped[4096]; /* "object: why", a line for each */
	unsigned drops;
};

static void add_line(char lines[4096], evrec_str what, const char *text)
{
	size_t len = strlen(lines);

	(void)snprintf(lines + len, 4096 - len, "%.*s: %s\n", (int)what.len, what.data, text);
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
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = life;
	life->b = evrec_broadcaster_new(&options, NULL);
	life->r = evrec_recorder_new(life->b, EVREC_STR("operator"), EVREC_STR("node-1"), NULL);
	evrec_kubernetes_options_init(&sink_options);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	sink_options.server = str_from(url);
	sink_options.spool = str_from(spool);
	sink_options.threadless = threadless;
	sink_options.limits = *limits;
	sink_options.max_in_flight = 1; /* one after the other, for the server's script */
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

/* The next one finds nothing in there. */
static void assert_nothing_left(const struct server *server, const char *spool, bool threadless)
{
	struct life life;

	begin(&life, server->port, spool, threadless);
	assert_int_equal(shut_down(life.b, SOON), 0);
	assert_int_equal(check_books(life.b).restored, 0);
	end(&life);
}

static void record_as(struct life *life, const char *name, unsigned times, const char *type, int64_t timestamp)
{
	const evrec_pair pair = { EVREC_STR("team"), EVREC_STR("blue \"x\"") };
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = EVREC_STR("shop") };
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("node-1") };
	const evrec_emit what = {
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
		assert_int_equal(emit(life->r, life->b, &what), 0);
	}
}

static void record(struct life *life, const char *name, unsigned times)
{
	record_as(life, name, times, "Warning", EVREC_UNSET);
}

/* Which of the two requests has this text. */
static size_t which(struct server *server, const char *text)
{
	return strstr(server->requests[0], text) != NULL ? 0 : 1;
}

/* The part of a request from `from` up to `to`; the caller's to free. */
static char *part(const char *request, const char *from, const char *to)
{
	const char *start = strstr(request, from), *stop;

	assert_non_null(start);
	start += strlen(from);
	stop = strstr(start, to);
	assert_non_null(stop);
	return strndup(start, (size_t)(stop - start));
}

static void saw(struct server *server, size_t n, const char *text)
{
	assert_true(n < server_requests(server));
	if (strstr(server->requests[n], text) == NULL) {
		fail_msg("\"%s\" is not in:\n%s", text, server->requests[n]);
	}
}

static void test_the_server_was_down(void **state)
{
	static const struct turn turns[] = { { TURN_KEEP, CREATED } };
	const char *spool = in_folder(*state, "spool");
	evrec_sink_stats s;
	struct server server;
	struct life life;
	size_t web0;

	for (int threadless = 0; threadless <= 1; threadless++) {
		server_bind(&server);
		begin(&life, server.port, spool, threadless != 0);
		record(&life, "web-0", 3);
		record(&life, "web-1", 1);
		assert_int_equal(shut_down(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
		s = check_books(life.b);
		assert_true(s.spooled == 4 && s.created == 0 && life.drops == 0);
		assert_int_equal(shut_down(life.b, 0), 0);
		end(&life);
		server_start(&server, turns, 1);
		begin(&life, server.port, spool, threadless != 0);
		/* Nothing has to be recorded for it. */
		assert_int_equal(flush(life.b, SOON), 0);
		s = check_books(life.b);
		assert_true(s.restored == 4 && s.received == 4 && s.created == 2 && s.coalesced == 2);
		assert_int_equal(shut_down(life.b, SOON), 0);
		assert_string_equal(life.errors, "");
		end(&life);
		assert_int_equal(server_requests(&server), 2);
		web0 = which(&server, "\"name\":\"web-0.");
		saw(&server, web0, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
		saw(&server, web0, "\"name\":\"web-0.");
		saw(&server, web0, "\"count\":3");
		saw(&server, web0, "\"message\":\"a NUL \\u0000, a \xe2\x82\xac, a \\\\\"");
		saw(&server, web0, "\"annotations\":{\"team\":\"blue \\\"x\\\"\"}");
		saw(&server, web0, "\"related\":{\"kind\":\"Node\",\"name\":\"node-1\"}");
		saw(&server, 1 - web0, "\"name\":\"web-1.");
		assert_nothing_left(&server, spool, threadless != 0);
		server_stop(&server);
	}
}

/* The server took the POST, and went away before it said so: the same name again, which is taken, and that is that. */
static void test_a_post_that_had_arrived(void **state)
{
	static const struct turn turns[] = { { TURN_MUTE, NULL }, { TURN_KEEP, TAKEN }, { TURN_KEEP, CREATED } };
	const char *spool = in_folder(*state, "spool");
	char *first, *again, *patched;
	evrec_sink_stats s;
	struct server server;
	struct life life;

	server_bind(&server);
	server_start(&server, turns, 3);
	begin(&life, server.port, spool, false);
	record(&life, "web-0", 1);
	while (server_requests(&server) == 0) {
		usleep(1000);
	}
	record(&life, "web-0", 2); /* follows it */
	(void)shut_down(life.b, EVREC_SECOND / 20);
	assert_int_equal(check_books(life.b).spooled, 3);
	end(&life);
	begin(&life, server.port, spool, false);
	assert_int_equal(flush(life.b, SOON), 0);
	s = check_books(life.b);
	assert_true(s.created == 1 && s.patched == 1 && s.coalesced == 1);
	assert_int_equal(shut_down(life.b, SOON), 0);
	end(&life);
	assert_int_equal(server_requests(&server), 3);
	first = part(server.requests[0], "\"metadata\":{\"name\":\"", "\"");
	again = part(server.requests[1], "\"metadata\":{\"name\":\"", "\"");
	patched = part(server.requests[2], "PATCH /api/v1/namespaces/shop/events/", " ");
	assert_string_equal(first, again);
	assert_string_equal(first, patched);
	saw(&server, 2, "{\"count\":3,\"lastTimestamp\":\"");
	server_stop(&server);
	free(first);
	free(again);
	free(patched);
}

/* A count for an event that is there already stays a PATCH. */
static void test_a_patch(void **state)
{
	static const struct turn turns[] = { { TURN_KEEP, CREATED }, { TURN_MUTE, NULL }, { TURN_KEEP, CREATED } };
	const char *spool = in_folder(*state, "spool");
	struct server server;
	struct life life;

	server_bind(&server);
	server_start(&server, turns, 3);
	begin(&life, server.port, spool, false);
	record(&life, "web-0", 1);
	assert_int_equal(flush(life.b, SOON), 0);
	record(&life, "web-0", 1);
	(void)shut_down(life.b, EVREC_SECOND / 20);
	assert_int_equal(check_books(life.b).spooled, 1);
	end(&life);
	begin(&life, server.port, spool, false);
	assert_int_equal(shut_down(life.b, SOON), 0);
	assert_true(check_books(life.b).patched == 1 && check_books(life.b).restored == 1);
	end(&life);
	saw(&server, 2, "PATCH /api/v1/namespaces/shop/events/web-0.");
	saw(&server, 2, "{\"count\":2,");
	server_stop(&server);
}

/*
 * In the file for longer than max_age: the server would have forgotten it by now. What was recorded about the past is
 * not.
 */
static void test_what_is_too_old(void **state)
{
	static const struct turn turns[] = { { TURN_KEEP, CREATED } };
	const int64_t past = evrec_clock_now(evrec_clock_real()) - 7200 * EVREC_SECOND;
	const char *spool = in_folder(*state, "spool");
	evrec_sink_stats s;
	struct server server;
	struct life life;

	for (int threadless = 0; threadless <= 1; threadless++) {
		server_bind(&server);
		begin(&life, server.port, spool, threadless != 0);
		record_as(&life, "old", 2, "Normal", EVREC_UNSET);
		record_as(&life, "young", 1, "Normal", past);
		assert_int_equal(shut_down(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
		assert_int_equal(check_books(life.b).spooled, 3);
		end(&life);
		change(spool, "UPDATE writes SET last = last - 3660 * 1000000000 WHERE event LIKE '%\"old\"%'");
		server_start(&server, turns, 1);
		begin(&life, server.port, spool, threadless != 0);
		assert_int_equal(flush(life.b, SOON), 0);
		s = check_books(life.b);
		assert_true(s.restored == 3 && s.created == 1 && s.dropped[EVREC_CAUSE_EXPIRED] == 2);
		assert_string_equal(life.dropped, "old: expired\n");
		assert_int_equal(shut_down(life.b, SOON), 0);
		assert_string_equal(life.errors, "");
		end(&life);
		assert_int_equal(server_requests(&server), 1);
		saw(&server, 0, "\"name\":\"young.");
		assert_nothing_left(&server, spool, threadless != 0);
		server_stop(&server);
	}
}

/* Its type is what says so. */
static void test_a_warning_outlasts_others(void **state)
{
	const char *spool = in_folder(*state, "spool");
	struct server server;
	evrec_limits limits;
	struct life life;

	server_bind(&server); /* and nobody listens */
	begin(&life, server.port, spool, true);
	record_as(&life, "warning", 1, "Warning", EVREC_UNSET);
	assert_int_equal(shut_down(life.b, EVREC_SECOND / 10), EVREC_ETIMEOUT);
	end(&life);
	evrec_limits_init(&limits);
	limits.max_pending = 2;
	limits.full = EVREC_DROP_OLDEST;
	begin_limited(&life, server.port, spool, true, &limits);
	while (life.errors[0] == '\0') {
		poll_once(life.b);
	}
	assert_int_equal(check_books(life.b).restored, 1);
	/* It was refused, and waits for its next try: no poll is made meanwhile. */
	record_as(&life, "normal", 1, "Normal", EVREC_UNSET);
	record_as(&life, "another", 1, "Normal", EVREC_UNSET);
	record_as(&life, "new", 1, "Warning", EVREC_UNSET);
	record_as(&life, "last", 1, "Normal", EVREC_UNSET);
	assert_string_equal(life.dropped, "normal: queue_full\nanother: queue_full\nlast: queue_full\n");
	assert_int_equal(shut_down(life.b, 0), EVREC_ETIMEOUT);
	assert_int_equal(check_books(life.b).spooled, 2);
	end(&life);
	(void)close(server.listener);
}

static void test_two_sinks_one_spool(void **state)
{
	static const struct turn turns[] = { { TURN_REPLY, CREATED } };
	const char *spool = in_folder(*state, "spool");
	struct life first, second;
	struct server server;

	server_bind(&server);
	server_start(&server, turns, 1);
	begin(&first, server.port, spool, false);
	record(&first, "web-0", 1);
	assert_int_equal(flush(first.b, SOON), 0);
	begin(&second, server.port, spool, false);
	record(&second, "web-1", 1);
	assert_int_equal(shut_down(second.b, SOON), 0);
	assert_int_equal(check_books(second.b).created, 1);
	assert_non_null(strstr(second.errors, "spool: going on without the spool: "));
	assert_non_null(strstr(second.errors, " is in use by another process or sink\n"));
	assert_int_equal(shut_down(first.b, SOON), 0);
	end(&first);
	end(&second);
	server_stop(&server);
}

static void test_options(void **state)
{
	evrec_kubernetes_options options;
	evrec_error err = { 0 };

	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("http://127.0.0.1:1");
	options.spool = EVREC_STR("a\0b");
	assert_null(evrec_sink_kubernetes(&options, &err));
	assert_string_equal(err.message, "spool: must be the name of a file");
	/* Nothing is made before it is needed. */
	options.spool = str_from(in_folder(*state, "spool"));
	evrec_sink_release(evrec_sink_kubernetes(&options, &err));
	assert_int_equal(access(in_folder(*state, "spool"), F_OK), -1);
}

static void test_json_and_back(void **state)
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
		FOLDER_TEST(test_the_server_was_down),
		FOLDER_TEST(test_a_post_that_had_arrived),
		FOLDER_TEST(test_a_patch),
		FOLDER_TEST(test_what_is_too_old),
		FOLDER_TEST(test_a_warning_outlasts_others),
		FOLDER_TEST(test_two_sinks_one_spool),
		FOLDER_TEST(test_options),
		FOLDER_TEST(test_json_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
