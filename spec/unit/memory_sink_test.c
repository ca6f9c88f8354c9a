/*
 * Every allocation fails once: the sinks that do I/O, a file written by its thread, and a Kubernetes sink that polls a
 * server on the loopback address. What was recorded is written, or counted as lost.
 */
#define _GNU_SOURCE

#include "books.h"
#include "http_server.h"

#include "scarce.h"

#include "flow/sink.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <time.h>

#define SOON (5 * EVREC_SECOND)
#define EVENT "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\",\"resourceVersion\":\"7\"}}"
#define PEM "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"

/* libcurl's memory fails where a test says so. */
static bool curl_is_scarce;

static void *curl_realloc(void *block, size_t size)
{
	return curl_is_scarce && scarce_fails() ? NULL : scarce_take(block, size);
}

static void *curl_malloc(size_t size)
{
	return curl_realloc(NULL, size);
}

static void *curl_calloc(size_t n, size_t size)
{
	void *block = curl_realloc(NULL, n * size);

	return block == NULL ? NULL : memset(block, 0, n * size);
}

static char *curl_strdup(const char *text)
{
	char *copy = curl_realloc(NULL, strlen(text) + 1);

	return copy == NULL ? NULL : strcpy(copy, text);
}

static char folder[] = P_tmpdir "/evrec-memory-XXXXXX";
static char file_path[64], token_path[64], spool_path[64];
static struct server server;
static char server_url[64];

/* ---- recording to a sink ---- */

struct flow {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
};

static bool open_flow(struct flow *f, evrec_sink *sink)
{
	evrec_broadcaster_options options;
	evrec_error err = { 0 };

	f->clock = evrec_clock_fake(T0);
	scarce_check(f->clock != NULL);
	if (f->clock == NULL) {
		return false;
	}
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, &err);
	scarce_check_error(f->b != NULL, &err);
	if (f->b == NULL) {
		return false;
	}
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("host"), &err);
	scarce_check_error(f->r != NULL, &err);
	f->watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, &err);
	scarce_check_error(f->watch != NULL, &err);
	return f->r != NULL && f->watch != NULL;
}

static void record(struct flow *f, const char *object)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"),
		                            .name = str_from(object),
		                            .ns = EVREC_STR("shop") };
	const evrec_emit what = { .regarding = &regarding,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .note = EVREC_STR("a message\xFF"),
		                  .timestamp = EVREC_UNSET };
	int code = evrec_recorder_emit(f->r, &what, NULL);

	assert_true(code == 0 || code == EVREC_EDROPPED);
	(void)check_books(f->b);
}

static uint64_t pending(const struct flow *f)
{
	return check_books(f->b).pending;
}

/* Gives what can be written a chance to be: until all that is left waits for the clock, which stands. */
static void record_some(struct flow *f)
{
	record(f, "a");
	record(f, "b");
	record(f, "a");
	(void)evrec_broadcaster_flush(f->b, SOON);
	(void)check_books(f->b);
}

/* Lets the server run, or a sink's thread. Not by sched_yield: others that want the processor take a long turn. */
static void breathe(void)
{
	const struct timespec moment = { 0, 10000 };

	(void)nanosleep(&moment, NULL);
}

/* What was kept is written, and so is what comes now. */
static evrec_sink_stats go_on_with_memory(struct flow *f)
{
	int64_t deadline = evrec_clock_now(evrec_clock_real()) + SOON;
	evrec_sink_stats s;

	scarce_rest();
	record(f, "c");
	while (pending(f) != 0 && evrec_clock_now(evrec_clock_real()) < deadline) {
		evrec_broadcaster_poll(f->b);
		evrec_clock_set(f->clock, evrec_clock_now(f->clock) + EVREC_SECOND);
		breathe();
	}
	s = check_books(f->b);
	assert_int_equal(s.pending, 0);
	assert_int_equal(s.received, s.created + s.patched + s.coalesced + s.dropped[EVREC_CAUSE_MEMORY]);
	assert_int_equal(evrec_broadcaster_shutdown(f->b, SOON), 0);
	return s;
}

static void close_flow(struct flow *f)
{
	evrec_watch_free(f->watch);
	evrec_recorder_free(f->r);
	if (f->b != NULL) {
		(void)evrec_broadcaster_shutdown(f->b, 0);
	}
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
}

/* ---- the file ---- */

static size_t count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t lines = 0;
	int c;

	while (file != NULL && (c = fgetc(file)) != EOF) {
		lines += c == '\n';
	}
	if (file != NULL) {
		(void)fclose(file);
	}
	return lines;
}

static bool without_thread;

static void to_file(void)
{
	struct flow f = { 0 };
	evrec_error err = { 0 };
	evrec_limits limits;
	evrec_sink_stats s;
	evrec_sink *sink;

	(void)unlink(file_path);
	evrec_limits_init(&limits);
	limits.max_age = 0; /* the clock runs while a thread does not */
	scarce_begin();
	sink = evrec_sink_file(str_from(file_path), &limits, &err);
	scarce_check_error(sink != NULL, &err);
	if (sink != NULL) {
		sink->options.threadless = without_thread;
	}
	if (sink != NULL && open_flow(&f, sink)) {
		record_some(&f);
		s = go_on_with_memory(&f);
		assert_int_equal(count_lines(file_path), s.created + s.patched);
	}
	scarce_rest();
	close_flow(&f);
	evrec_sink_release(sink);
}

/* ---- Kubernetes ---- */

static void to_server(void)
{
	size_t requests = server_requests(&server);
	evrec_kubernetes_options options;
	struct flow f = { 0 };
	evrec_error err = { 0 };
	evrec_sink_stats s;
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = str_from(server_url);
	options.token_file = str_from(token_path);
	options.ca = options.client_certificate = options.client_key = EVREC_STR(PEM);
	options.spool = str_from(spool_path);
	options.limits.max_age = 0;
	options.threadless = true;
	options.timeout = 2 * EVREC_SECOND;
	scarce_begin();
	sink = evrec_sink_kubernetes(&options, &err);
	scarce_check_error(sink != NULL, &err);
	if (sink != NULL && open_flow(&f, sink)) {
		record_some(&f);
		s = go_on_with_memory(&f);
		/* What found no memory before it was sent is a retry too. */
		assert_in_range(server_requests(&server) - requests, s.created + s.patched,
		                s.created + s.patched + s.retries);
	}
	scarce_rest();
	close_flow(&f);
	evrec_sink_release(sink);
}

static void test_file(void **state)
{
	(void)state;
	without_thread = true;
	scarce_run(to_file, 50);
	without_thread = false;
}

/* Its thread writes what it can, and meets a failure somewhere. */
static void test_file_by_a_thread(void **state)
{
	(void)state;
	scarce_run(to_file, 20);
}

static void test_kubernetes(void **state)
{
	(void)state;
	scarce_run(to_server, 60);
}

static void test_kubernetes_with_libcurl(void **state)
{
	(void)state;
	curl_is_scarce = true;
	scarce_run(to_server, 60);
	curl_is_scarce = false;
}

static void write_token(void)
{
	int fd = open(token_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, "token\n", 6), 6);
	close(fd);
}

static int set_up(void **state)
{
	static const struct turn turns[] = { { TURN_REPLY,
		                               "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" EVENT } };

	(void)state;
	assert_int_equal(curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_malloc, scarce_free, curl_realloc, curl_strdup,
	                                      curl_calloc),
	                 0);
	assert_non_null(mkdtemp(folder));
	(void)snprintf(file_path, sizeof(file_path), "%s/events", folder);
	(void)snprintf(spool_path, sizeof(spool_path), "%s/spool", folder);
	(void)snprintf(token_path, sizeof(token_path), "%s/token", folder);
	write_token();
	server_bind(&server);
	server_start(&server, turns, 1);
	(void)snprintf(server_url, sizeof(server_url), "http://127.0.0.1:%d", server.port);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	server_stop(&server);
	(void)unlink(file_path);
	(void)unlink(spool_path);
	(void)unlink(token_path);
	(void)rmdir(folder);
	curl_global_cleanup();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_by_a_thread),
		cmocka_unit_test(test_kubernetes),
		cmocka_unit_test(test_kubernetes_with_libcurl),
	};

	return cmocka_run_group_tests_name("memory: sinks", tests, set_up, tear_down);
}
