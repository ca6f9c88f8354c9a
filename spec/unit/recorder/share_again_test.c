/* The owner is killed while the server answers: the next one makes no second event of what that one has sent. */
#include "http_server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

static evrec_broadcaster *open_broadcaster(const char *share, const char *url, evrec_watch **watch)
{
	evrec_broadcaster_options options;
	evrec_kubernetes_options kubernetes;
	evrec_broadcaster *b;
	evrec_sink *sink;

	evrec_broadcaster_options_init(&options);
	evrec_kubernetes_options_init(&kubernetes);
	options.share = str_from(share);
	options.drive = EVREC_DRIVE_POLL;
	kubernetes.server = str_from(url);
	b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_kubernetes(&kubernetes, NULL);
	*watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	evrec_sink_release(sink);
	return b;
}

static void record(evrec_broadcaster *b)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_recorder *r = evrec_recorder_new(b, &source, NULL);
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = EVREC_STR("m");
	assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
	evrec_recorder_free(r);
}

/* Polls for ever, and tells when it owns. */
static void own(const char *share, const char *url, int ready)
{
	evrec_watch *watch;
	evrec_broadcaster *b = open_broadcaster(share, url, &watch);

	evrec_broadcaster_poll(b);
	(void)!write(ready, "r", 1);
	for (;;) {
		evrec_broadcaster_poll(b);
		(void)poll(NULL, 0, 1);
	}
}

static evrec_sink_stats poll_once(evrec_broadcaster *b)
{
	evrec_sink_stats s;

	evrec_broadcaster_poll(b);
	(void)poll(NULL, 0, 1);
	assert_true(evrec_broadcaster_get_sink_stats(b, 1, &s));
	return s;
}

static void test_create_of_a_killed_owner_is_found(void **state)
{
	struct http_server server;
	char share[64], byte;
	evrec_broadcaster *b;
	evrec_sink_stats s;
	evrec_watch *watch;
	int ready[2];
	pid_t owner;

	(void)state;
	(void)snprintf(share, sizeof(share), "@evrec-again-%ld", (long)getpid());
	http_server_bind(&server, "");
	assert_int_equal(pipe(ready), 0);
	owner = fork();
	if (owner == 0) {
		own(share, server.url, ready[1]);
	}
	http_server_start(&server, TURNS({ TURN_MUTE, NULL }, { TURN_REPLY, HTTP_REPLY("409 Conflict", "", "") }));
	assert_int_equal(read(ready[0], &byte, 1), 1);
	b = open_broadcaster(share, server.url, &watch);
	record(b);
	while (http_server_requests(&server) == 0) {
		(void)poll_once(b);
	}
	(void)kill(owner, SIGKILL);
	assert_int_equal(unit_wait(owner), SIGKILL);
	do {
		s = poll_once(b);
	} while (s.created == 0 && s.dropped[EVREC_CAUSE_CONFLICT] == 0);
	assert_int_equal(s.created, 1);
	assert_int_equal(http_server_requests(&server), 2);
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), 0);
	evrec_watch_free(watch);
	evrec_broadcaster_free(b);
	http_server_stop(&server);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_of_a_killed_owner_is_found),
	};

	return cmocka_run_group_tests_name("share_again", tests, NULL, NULL);
}
