/*
 * Every allocation fails once: the sinks that do I/O. A file that a thread writes, and sinks of Kubernetes and OTLP that are
 * polled and have a server on the loopback address. Every event is written or counted as dropped.
 */
#define _GNU_SOURCE

#include "curl_alloc_failure.h"
#include "http_server.h"
#include "no_memory_recorder.h"
#include "pem_data.h"
#include "stats_invariants.h"
#include "tmpdir.h"

#include "evrec_otlp.h"
#include "sink/sink.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <time.h>

/* An event, and a list of one as well, which a sink with `resume` goes on with. */
#define OLD_EVENT                                                                                                      \
	"{\"metadata\":{\"name\":\"old\",\"namespace\":\"shop\"},\"eventTime\":\"2200-01-01T00:00:00.000000Z\","       \
	"\"reportingController\":\"component\",\"reportingInstance\":\"host\",\"action\":\"A\",\"reason\":\"R\","      \
	"\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"a\"},"                                      \
	"\"related\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"a\"},\"type\":\"Normal\"}"
#define EVENT                                                                                                          \
	"{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\",\"resourceVersion\":\"7\"},\"items\":[" OLD_EVENT "]}"

/* Shared by all tests of the group; global, because a scenario has no argument. */
static struct {
	void *dir; /* *state of tmpdir */
	char file[512], store[512], token[512], pair[512], spool[512];
	char account[512]; /* the folder of the token and ca.crt */
	char named[96];    /* the server's URL, by its name */
	struct http_server server;
	bool without_thread; /* the file's sink has no thread */
	bool resume;         /* the Kubernetes sink goes on with series */
	bool json;           /* the OTLP sink sends JSON, not compressed */
} group;

/* ---- recording to a sink ---- */

struct scenario {
	struct no_memory_recorder base;
	evrec_watch *watch;
};

static bool open_recorder(struct scenario *f, evrec_sink *sink, enum evrec_drive drive)
{
	evrec_broadcaster_options options;
	bool opened;

	evrec_broadcaster_options_init(&options);
	options.drive = drive;
	opened = no_memory_recorder_open(&f->base, &options);
	if (f->base.b == NULL) {
		return false;
	}
	f->watch = no_memory_recorder_start(&f->base, sink, NULL);
	return opened && f->watch != NULL;
}

static void record(struct scenario *f, const char *object)
{
	int code = no_memory_recorder_record(&f->base, str_from(object), EVREC_STR("a message\xFF"), NULL);

	assert_true(code == 0 || code == EVREC_EDROPPED);
	(void)stats_check_equations(f->base.b);
}

static uint64_t pending(const struct scenario *f)
{
	return stats_check_equations(f->base.b).pending;
}

/* Lets the server or a sink's thread run. sched_yield would let other processes run for long. */
static void yield_briefly(void)
{
	const struct timespec moment = { 0, 10000 };

	(void)nanosleep(&moment, NULL);
}

/*
 * Polls while the clock runs, as a list that failed is asked for again by it. In the end a list has been given up, and a
 * create that waited for it was sent.
 */
static void run_clock(struct scenario *f)
{
	for (int i = 0; i < 150 && pending(f) != 0; i++) {
		evrec_broadcaster_poll(f->base.b);
		evrec_clock_set(f->base.clock, evrec_clock_now(f->base.clock) + EVREC_SECOND / 10);
		yield_briefly();
	}
}

/* Records and flushes, until all writes left wait for the clock, which stands still. */
static void record_some(struct scenario *f)
{
	record(f, "a");
	record(f, "b");
	record(f, "a");
	if (group.resume) {
		run_clock(f);
	}
	(void)evrec_broadcaster_flush(f->base.b, SOON, NULL);
	(void)stats_check_equations(f->base.b);
}

/* From here on no allocation fails: pending events are written, and so is a new one. */
static evrec_sink_stats go_on_with_memory(struct scenario *f)
{
	int64_t deadline = evrec_clock_now(evrec_clock_real()) + SOON;
	evrec_sink_stats s;

	alloc_failure_disarm();
	record(f, "c");
	while (pending(f) != 0 && evrec_clock_now(evrec_clock_real()) < deadline) {
		evrec_broadcaster_poll(f->base.b);
		evrec_clock_set(f->base.clock, evrec_clock_now(f->base.clock) + EVREC_SECOND);
		yield_briefly();
	}
	s = stats_check_equations(f->base.b);
	assert_int_equal(s.pending, 0);
	assert_int_equal(s.received, s.created + s.patched + s.coalesced + s.dropped[EVREC_CAUSE_MEMORY]);
	assert_int_equal(evrec_broadcaster_shutdown(f->base.b, SOON, NULL), 0);
	return s;
}

static void close_recorder(struct scenario *f)
{
	evrec_watch_free(f->watch);
	no_memory_recorder_close(&f->base);
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

static void write_file(void)
{
	struct scenario f = { 0 };
	evrec_error err = { 0 };
	evrec_sink_options common;
	evrec_sink_stats s;
	evrec_sink *sink;

	(void)unlink(group.file);
	evrec_sink_options_init(&common);
	common.limits.max_age = 0; /* the clock advances while the thread does not run */
	alloc_failure_arm();
	sink = evrec_sink_file(str_from(group.file), &common, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL && open_recorder(&f, sink, group.without_thread ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO)) {
		record_some(&f);
		s = go_on_with_memory(&f);
		assert_int_equal(count_lines(group.file), s.created + s.patched);
	}
	alloc_failure_disarm();
	close_recorder(&f);
	evrec_sink_release(sink);
}

/* ---- the store ---- */

static void write_store(void)
{
	struct scenario f = { 0 };
	evrec_error err = { 0 };
	evrec_store_options options;
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_store_options_init(&options);
	options.path = str_from(group.store);
	evrec_sink_options_init(&common);
	common.limits.max_age = 0;
	alloc_failure_arm();
	sink = evrec_sink_store(&options, &common, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL && open_recorder(&f, sink, EVREC_DRIVE_POLL)) {
		record_some(&f);
		(void)go_on_with_memory(&f);
	}
	alloc_failure_disarm();
	close_recorder(&f);
	evrec_sink_release(sink);
}

/* ---- Kubernetes ---- */

static void write_to_server(void)
{
	const evrec_str any = EVREC_STR("*");
	size_t requests = http_server_requests(&group.server);
	evrec_kubernetes_options options;
	struct scenario f = { 0 };
	evrec_error err = { 0 };
	evrec_sink_stats s;
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = str_from(group.named);
	options.resolve_early = true;
	options.token_file = str_from(group.token);
	options.ca = EVREC_STR(PEM_CERTIFICATE);
	options.client_certificate_file = options.client_key_file = str_from(group.pair);
	options.common.spool = str_from(group.spool);
	options.common.limits.max_age = 0;
	options.timeout = SOON;
	options.common.api = group.resume ? EVREC_SINK_EVENTS_V1 : EVREC_SINK_CORE_V1;
	options.resume = group.resume;
	options.resume_instances = &any;
	options.resume_instances_len = group.resume;
	alloc_failure_arm();
	sink = evrec_sink_kubernetes(&options, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL && open_recorder(&f, sink, EVREC_DRIVE_POLL)) {
		record_some(&f);
		s = go_on_with_memory(&f);
		/* A write without memory for its request counts as a retry too; a list may be asked for again. */
		assert_in_range(http_server_requests(&group.server) - requests, s.created + s.patched,
		                s.created + s.patched + s.retries + (group.resume ? 3 : 0));
	}
	alloc_failure_disarm();
	close_recorder(&f);
	evrec_sink_release(sink);
}

/* ---- OTLP ---- */

static void write_to_receiver(void)
{
	const evrec_pair header = { EVREC_STR("x-key"), EVREC_STR("value") };
	const evrec_pair resource = { EVREC_STR("service.name"), EVREC_STR("operator") };
	evrec_otlp_options options;
	struct scenario f = { 0 };
	evrec_error err = { 0 };
	evrec_sink *sink;

	evrec_otlp_options_init(&options);
	options.endpoint = str_from(group.named);
	options.resolve_early = true;
	options.headers = (evrec_map){ &header, 1 };
	options.resource = (evrec_map){ &resource, 1 };
	options.ca = options.client_certificate = EVREC_STR(PEM_CERTIFICATE);
	options.client_key = EVREC_STR(PEM_KEY);
	options.encoding = group.json ? EVREC_OTLP_JSON : EVREC_OTLP_PROTOBUF;
	options.compression = group.json ? EVREC_OTLP_NONE : EVREC_OTLP_GZIP;
	options.common.spool = str_from(group.spool);
	options.common.limits.max_age = 0;
	options.timeout = 2 * EVREC_SECOND;
	options.min_interval = 0;
	alloc_failure_arm();
	sink = evrec_sink_otlp(&options, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL && open_recorder(&f, sink, EVREC_DRIVE_POLL)) {
		record_some(&f);
		(void)go_on_with_memory(&f);
	}
	alloc_failure_disarm();
	close_recorder(&f);
	evrec_sink_release(sink);
}

/* Runs nothing: plugin_test.c has runs without memory, by a fake clock. */
static void start_with_plugin(void)
{
	const evrec_str argument = EVREC_STR("x");
	const evrec_exec exec = {
		EVREC_STR("echo"), &argument, 1, { NULL, 0 }, EVREC_STR("client.authentication.k8s.io/v1"), true,
		{ NULL, 0 }
	};
	evrec_kubernetes_options options;
	struct scenario f = { 0 };
	evrec_error err = { 0 };
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = str_from(group.server.url);
	options.exec = &exec;
	alloc_failure_arm();
	sink = evrec_sink_kubernetes(&options, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL) {
		(void)open_recorder(&f, sink, EVREC_DRIVE_AUTO);
	}
	alloc_failure_disarm();
	close_recorder(&f);
	evrec_sink_release(sink);
}

static void make_in_cluster(void)
{
	evrec_error err = { 0 };
	evrec_sink *sink;

	alloc_failure_arm();
	sink = evrec_sink_in_cluster(str_from(group.account), NULL, &err);
	alloc_failure_check_error(sink != NULL, &err);
	alloc_failure_disarm();
	evrec_sink_release(sink);
}

static void test_pods_account_survives_failures(void **state)
{
	(void)state;
	assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1), 0);
	assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "443", 1), 0);
	alloc_failure_run(make_in_cluster, 8);
}

static void test_file_loses_nothing_uncounted(void **state)
{
	(void)state;
	group.without_thread = true;
	alloc_failure_run(write_file, 50);
	group.without_thread = false;
}

/* The failure may come in the thread or in the test. */
static void test_file_with_a_thread_loses_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(write_file, 20);
}

static void test_store_loses_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(write_store, 50);
}

static void test_kubernetes_loses_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(write_to_server, 60);
}

static void test_resuming_loses_nothing_uncounted(void **state)
{
	(void)state;
	group.resume = true;
	alloc_failure_run(write_to_server, 60);
	group.resume = false;
}

static void test_otlp_loses_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(write_to_receiver, 60);
	group.json = true;
	alloc_failure_run(write_to_receiver, 60);
	group.json = false;
}

static void test_otlp_survives_failures_in_libcurl(void **state)
{
	(void)state;
	curl_alloc_fails = true;
	alloc_failure_run(write_to_receiver, 60);
	curl_alloc_fails = false;
}

static void test_kubernetes_with_a_plugin_starts_or_says_why_not(void **state)
{
	(void)state;
	alloc_failure_run(start_with_plugin, 20);
}

static void test_kubernetes_survives_failures_in_libcurl(void **state)
{
	(void)state;
	curl_alloc_fails = true;
	alloc_failure_run(write_to_server, 60);
	curl_alloc_fails = false;
}

static int group_setup(void **state)
{
	static const struct http_turn turns[] = { { TURN_REPLY, HTTP_REPLY("201 Created", "", EVENT) } };

	curl_alloc_failure_init();
	assert_int_equal(tmpdir_setup(state), 0);
	group.dir = *state;
	(void)snprintf(group.file, sizeof(group.file), "%s", tmpdir_path(group.dir, "events"));
	(void)snprintf(group.store, sizeof(group.store), "%s", tmpdir_path(group.dir, "events.db"));
	(void)snprintf(group.spool, sizeof(group.spool), "%s", tmpdir_path(group.dir, "spool"));
	(void)snprintf(group.token, sizeof(group.token), "%s", tmpdir_path(group.dir, "token"));
	tmpdir_write_file(group.token, "token\n");
	(void)snprintf(group.pair, sizeof(group.pair), "%s", tmpdir_path(group.dir, "pair.pem"));
	tmpdir_write_file(group.pair, PEM_CERTIFICATE PEM_KEY);
	tmpdir_write_file(tmpdir_path(group.dir, "ca.crt"), PEM_CERTIFICATE);
	(void)snprintf(group.account, sizeof(group.account), "%.*s", (int)(strlen(group.token) - strlen("/token")),
	               group.token);
	http_server_bind(&group.server, "");
	(void)snprintf(group.named, sizeof(group.named), "http://localhost:%d", group.server.port);
	http_server_start(&group.server, turns, 1);
	return 0;
}

static int group_teardown(void **state)
{
	http_server_stop(&group.server);
	(void)tmpdir_teardown(state);
	curl_global_cleanup();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_account_survives_failures),
		cmocka_unit_test(test_file_loses_nothing_uncounted),
		cmocka_unit_test(test_file_with_a_thread_loses_nothing_uncounted),
		cmocka_unit_test(test_store_loses_nothing_uncounted),
		cmocka_unit_test(test_kubernetes_loses_nothing_uncounted),
		cmocka_unit_test(test_resuming_loses_nothing_uncounted),
		cmocka_unit_test(test_otlp_loses_nothing_uncounted),
		cmocka_unit_test(test_otlp_survives_failures_in_libcurl),
		cmocka_unit_test(test_kubernetes_with_a_plugin_starts_or_says_why_not),
		cmocka_unit_test(test_kubernetes_survives_failures_in_libcurl),
	};

	return cmocka_run_group_tests_name("memory: sinks", tests, group_setup, group_teardown);
}
