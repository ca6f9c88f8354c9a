/* The Kubernetes sink with a credential plugin: writes wait for it, and an answer of 401 brings a new run. */
#define _GNU_SOURCE

#include "kubernetes_fixture.h"
#include "pem_data.h"
#include "tmpdir.h"

#include "exec/command.h"
#include "sink/fingerprint.h"

#define SCRIPT "echo run >>\"$1\"; . \"$0\""
#define PRINT(status)                                                                                                  \
	"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{" status    \
	"}}'"
#define UNAUTHORIZED HTTP_REPLY("401 Unauthorized", "", "{\"kind\":\"Status\",\"message\":\"Unauthorized\"}")

/* The command runs this file from now on. */
static void set_plugin(void *dir, const char *script)
{
	tmpdir_write_file(tmpdir_path(dir, "plugin"), script);
}

static void open_fixture(struct kubernetes_fixture *f, void *dir, const struct http_turn *turns, size_t turns_len)
{
	evrec_exec exec = { .command = EVREC_STR("sh"), .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	const evrec_str args[] = { EVREC_STR("-c"), EVREC_STR(SCRIPT), str_from(tmpdir_path(dir, "plugin")),
		                   str_from(tmpdir_path(dir, "runs")) };

	kubernetes_fixture_prepare(f, "");
	http_server_start(&f->server, turns, turns_len);
	exec.args = args;
	exec.args_len = 4;
	f->command = exec_command_new(&exec, NULL, NULL);
	assert_non_null(f->command);
	tmpdir_write_file(tmpdir_path(dir, "runs"), "");
}

static void close_fixture(struct kubernetes_fixture *f)
{
	kubernetes_fixture_close(f);
	exec_command_release(f->command);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static size_t runs(void *dir)
{
	FILE *file = fopen(tmpdir_path(dir, "runs"), "r");
	size_t n = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF) {
		n += c == '\n';
	}
	(void)fclose(file);
	return n;
}

static void step_until_message(struct kubernetes_fixture *f, const char *text)
{
	int64_t deadline = unit_mono() + SOON;
	struct outbox_message message;

	while (!outbox_next_message(f->ob, &message)) {
		assert_true(unit_mono() < deadline);
		sender_step(f->sender);
		usleep(500);
	}
	assert_string_equal(message.name, "unauthorized");
	unit_check_contains(message.message, text);
}

static void test_writes_wait_for_the_token(void **state)
{
	struct kubernetes_fixture f;

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	set_plugin(*state, PRINT("\"token\":\"from-plugin\""));
	kubernetes_fixture_open_sender(&f, true);
	sender_step(f.sender);
	assert_int_equal(runs(*state), 0);
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "\r\nAuthorization: Bearer from-plugin\r\n");
	http_server_check_saw(&f.server, 1, "\r\nAuthorization: Bearer from-plugin\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	assert_int_equal(kubernetes_fixture_stats(&f).retries, 0);
	assert_int_equal(runs(*state), 1);
	close_fixture(&f);
}

static void test_a_failure_is_told_and_costs_no_try(void **state)
{
	struct outbox_message message;
	struct kubernetes_fixture f;

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	set_plugin(*state, "echo 'You must be logged in.' >&2; exit 1");
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	step_until_message(&f, "exec plugin 'sh': exit status 1: You must be logged in.");
	for (int i = 0; i < 100; i++) {
		sender_step(f.sender);
	}
	assert_int_equal(runs(*state), 1);
	assert_int_equal(http_server_requests(&f.server), 0);
	set_plugin(*state, PRINT("\"token\":\"bad token\""));
	evrec_clock_set(f.clock, EVREC_SECOND);
	step_until_message(&f, "exec plugin 'sh': token: too long, or a space");
	set_plugin(*state, PRINT("\"token\":\"t\",\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\""));
	evrec_clock_set(f.clock, 3 * EVREC_SECOND);
	step_until_message(&f, "exec plugin 'sh': client_certificate: no certificate in PEM form");
	set_plugin(*state, PRINT("\"token\":\"good\""));
	kubernetes_fixture_exchange(&f, 7 * EVREC_SECOND);
	http_server_check_saw(&f.server, 0, "\r\nAuthorization: Bearer good\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	assert_int_equal(kubernetes_fixture_stats(&f).retries, 0);
	assert_false(outbox_next_message(f.ob, &message));
	close_fixture(&f);
}

static void test_after_a_401_another_token_is_fetched(void **state)
{
	struct kubernetes_fixture f;

	open_fixture(
		&f, *state,
		TURNS({ TURN_REPLY, CREATED(EVENT) }, { TURN_REPLY, UNAUTHORIZED }, { TURN_REPLY, CREATED(EVENT) }));
	set_plugin(*state, PRINT("\"token\":\"first\""));
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	set_plugin(*state, PRINT("\"token\":\"second\""));
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	kubernetes_fixture_exchange(&f, 10 * EVREC_SECOND); /* the retry */
	http_server_check_saw(&f.server, 1, "\r\nAuthorization: Bearer first\r\n");
	http_server_check_saw(&f.server, 2, "\r\nAuthorization: Bearer second\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	assert_int_equal(runs(*state), 2);
	close_fixture(&f);
}

/* A plugin that prints this certificate, which none of the checks before its use refuses. */
static void set_plugin_with_certificate(void *dir, const char *certificate, const char *key)
{
	struct buf script = { 0 };

	buf_printf(&script, "cat <<'E'\n{\"kind\":\"ExecCredential\",");
	buf_printf(&script, "\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"clientKeyData\":\"");
	for (; *key != '\0'; key++) {
		buf_printf(&script, *key == '\n' ? "\\n" : "%c", *key);
	}
	buf_printf(&script, "\",\"clientCertificateData\":\"%s\"}}\nE\n", certificate);
	set_plugin(dir, buf_cstr(&script));
	buf_free(&script);
}

static void test_a_certificate_that_cannot_be_used_brings_a_new_run(void **state)
{
	struct kubernetes_fixture f;
	int64_t deadline = unit_mono() + SOON;
	struct outbox_message message;
	char url[64];

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", f.server.port);
	f.options.server = str_from(url);
	set_plugin_with_certificate(*state, "-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----", PEM_KEY);
	kubernetes_fixture_open_sender(&f, true);
	for (unsigned i = 1; i <= 3; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	step_until_message(&f, "exec plugin 'sh': ");
	while (kubernetes_fixture_stats(&f).in_flight != 0) {
		sender_step(f.sender);
	}
	while (outbox_next_message(f.ob, &message)) {
		assert_string_equal(message.name, "transport"); /* of several requests, one tells of the plugin */
	}
	assert_int_equal(runs(*state), 1);
	evrec_clock_set(f.clock, EVREC_SECOND);
	while (runs(*state) == 1) {
		assert_true(unit_mono() < deadline);
		sender_step(f.sender);
		usleep(500);
	}
	assert_int_equal(kubernetes_fixture_stats(&f).pending, 3);
	close_fixture(&f);
}

static void test_an_expiring_token_is_renewed(void **state)
{
	struct kubernetes_fixture f;

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	set_plugin(*state, PRINT("\"token\":\"first\",\"expirationTimestamp\":\"1970-01-01T00:01:40Z\""));
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	set_plugin(*state, PRINT("\"token\":\"second\""));
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 89 * EVREC_SECOND);
	http_server_check_saw(&f.server, 1, "\r\nAuthorization: Bearer first\r\n");
	fake_write_submit(f.ob, 3, 1);
	kubernetes_fixture_exchange(&f, 100 * EVREC_SECOND);
	http_server_check_saw(&f.server, 2, "\r\nAuthorization: Bearer second\r\n");
	assert_int_equal(runs(*state), 2);
	close_fixture(&f);
}

/* Nor with `resume`, before the first create: the sink has no list to ask for. */
static void test_it_is_not_run_while_nothing_is_sent(void **state)
{
	struct kubernetes_fixture f;

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	set_plugin(*state, PRINT("\"token\":\"first\",\"expirationTimestamp\":\"1970-01-01T00:01:40Z\""));
	f.options.resume = true;
	f.options.common.api = EVREC_SINK_EVENTS_V1;
	kubernetes_fixture_open_sender(&f, true);
	for (int64_t now = 0; now <= 100; now += 100) {
		evrec_clock_set(f.clock, now * EVREC_SECOND);
		for (int i = 0; i < 10; i++) {
			sender_step(f.sender);
			assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no command is running */
		}
		if (now == 0) {
			assert_true(kubernetes_fixture_submit(&f, 1, VERB_PATCH, "web.1"));
			kubernetes_fixture_exchange(&f, 0);
		}
	}
	assert_int_equal(runs(*state), 1);
	close_fixture(&f);
}

static void test_a_thread_runs_it_too(void **state)
{
	struct kubernetes_fixture f;
	int64_t deadline = unit_mono() + SOON;

	open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	/* Signals that the thread blocks must not be blocked in the command. */
	set_plugin(*state, "sleep 1000 & kill -TERM $!; wait $!; " PRINT("\"token\":\"from-thread\""));
	kubernetes_fixture_open_sender(&f, false);
	fake_write_submit(f.ob, 1, 1);
	while (kubernetes_fixture_stats(&f).created != 1) {
		assert_true(unit_mono() < deadline);
		usleep(500);
	}
	http_server_check_saw(&f.server, 0, "\r\nAuthorization: Bearer from-thread\r\n");
	close_fixture(&f);
}

/* The writes are dropped at the deadline, and the command is killed. */
static void test_the_end_does_not_wait_for_it(void **state)
{
	for (int threadless = 0; threadless < 2; threadless++) {
		struct kubernetes_fixture f;
		int64_t deadline = unit_mono() + SOON;

		open_fixture(&f, *state, TURNS({ TURN_REPLY, CREATED(EVENT) }));
		set_plugin(*state, "sleep 1000");
		kubernetes_fixture_open_sender(&f, threadless != 0);
		fake_write_submit(f.ob, 1, 1);
		while (runs(*state) == 0) {
			assert_true(unit_mono() < deadline);
			sender_step(f.sender);
			usleep(500);
		}
		assert_false(sender_join(f.sender, unit_mono()));
		assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 1);
		close_fixture(&f);
		assert_true(unit_mono() < deadline);
	}
}

static void add_fingerprint(const evrec_exec *exec, struct fingerprint *f)
{
	evrec_kubernetes_options options;
	evrec_error err = { 0 };
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("https://10.0.0.1");
	options.exec = exec;
	sink = evrec_sink_kubernetes(&options, &err);
	assert_string_equal(err.message, "");
	sink_fingerprint(sink, f);
	evrec_sink_release(sink);
}

/* Handles of a named broadcaster, and processes that share a recorder, have the same sinks. */
static void test_sinks_with_other_plugins_differ(void **state)
{
	const evrec_str args[] = { EVREC_STR("-c"), EVREC_STR("true") };
	const evrec_pair prod = { EVREC_STR("AWS_PROFILE"), EVREC_STR("prod") };
	const evrec_pair test = { EVREC_STR("AWS_PROFILE"), EVREC_STR("test") };
	const evrec_exec exec = { .command = EVREC_STR("sh"),
		                  .args = args,
		                  .args_len = 2,
		                  .env = { &prod, 1 },
		                  .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	struct fingerprint first = { 0 };

	(void)state;
	add_fingerprint(&exec, &first);
	for (int i = 0; i < 6; i++) {
		struct fingerprint next = { 0 };
		evrec_exec other = exec;

		other.command = i == 1 ? EVREC_STR("env") : exec.command;
		other.args_len -= i == 2;
		other.env.pairs = i == 3 ? &test : &prod;
		other.env.len -= i == 4;
		other.api_version = i == 5 ? EVREC_STR("client.authentication.k8s.io/v1beta1") : exec.api_version;
		/* The process's own environment may differ. */
		assert_int_equal(setenv("EVREC_TEST_ENVIRONMENT", i % 2 != 0 ? "a" : "b", 1), 0);
		add_fingerprint(&other, &next);
		if (i == 0) {
			assert_null(fingerprint_difference(&first, &next));
		} else {
			assert_non_null(fingerprint_difference(&first, &next));
			assert_string_equal(fingerprint_difference(&first, &next), "exec");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_writes_wait_for_the_token),
		TMPDIR_TEST(test_a_failure_is_told_and_costs_no_try),
		TMPDIR_TEST(test_after_a_401_another_token_is_fetched),
		TMPDIR_TEST(test_a_certificate_that_cannot_be_used_brings_a_new_run),
		TMPDIR_TEST(test_an_expiring_token_is_renewed),
		TMPDIR_TEST(test_it_is_not_run_while_nothing_is_sent),
		TMPDIR_TEST(test_a_thread_runs_it_too),
		TMPDIR_TEST(test_the_end_does_not_wait_for_it),
		cmocka_unit_test(test_sinks_with_other_plugins_differ),
	};

	return cmocka_run_group_tests_name("sink: kubernetes with a plugin", tests, NULL, NULL);
}
