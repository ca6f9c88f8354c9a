/* When a plugin is run, and how long its credential is good. The command is a real one; the clock is a fake one. */
#define _GNU_SOURCE

#include "tmpdir.h"

#include "exec/plugin.h"

#define SCRIPT "echo run >>\"$1\"; cat \"$0\"; cat \"$2\" >&2; exit $(cat \"$3\")"
#define CREDENTIAL(status)                                                                                             \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{" status "}}"

struct fixture {
	void *dir; /* *state of tmpdir */
	evrec_clock *clock;
	struct plugin *plugin;
	evrec_error err;
	char token[64]; /* of the last credential */
};

static const char *const files[] = { "output", "runs", "error", "code" };

/* From now on the command prints this, and exits with that code. */
static void set_command(struct fixture *f, const char *output, const char *error, const char *code)
{
	tmpdir_write_file(tmpdir_path(f->dir, "output"), output);
	tmpdir_write_file(tmpdir_path(f->dir, "error"), error);
	tmpdir_write_file(tmpdir_path(f->dir, "code"), code);
}

static void open_plugin(struct fixture *f, void *dir, const char *output)
{
	evrec_exec exec = { .command = EVREC_STR("sh"), .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	evrec_str args[6] = { EVREC_STR("-c"), EVREC_STR(SCRIPT) };
	struct exec_command *command;
	char paths[4][512];

	*f = (struct fixture){ .dir = dir, .clock = evrec_clock_fake(T0) };
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s", tmpdir_path(dir, files[i]));
		args[2 + i] = str_from(paths[i]);
	}
	exec.args = args;
	exec.args_len = 6;
	command = exec_command_new(&exec, NULL, &f->err);
	assert_non_null(command);
	f->plugin = plugin_new(command, f->clock);
	exec_command_release(command);
	tmpdir_write_file(paths[1], "");
	set_command(f, output, "", "0");
}

static void close_plugin(struct fixture *f)
{
	plugin_free(f->plugin);
	evrec_clock_release(f->clock);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static size_t runs(struct fixture *f)
{
	FILE *file = fopen(tmpdir_path(f->dir, "runs"), "r");
	char line[16];
	size_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		n++;
	}
	(void)fclose(file);
	return n;
}

static void set_time(struct fixture *f, int64_t after)
{
	evrec_clock_set(f->clock, T0 + after);
}

static enum plugin_news step(struct fixture *f)
{
	struct exec_credential credential;
	enum plugin_news news = plugin_step(f->plugin, &credential, &f->err);

	if (news == PLUGIN_CREDENTIAL) {
		(void)snprintf(f->token, sizeof(f->token), "%s", credential.token == NULL ? "" : credential.token);
		exec_credential_destroy(&credential);
	}
	return news;
}

/* Steps until there is news. */
static enum plugin_news run(struct fixture *f)
{
	int64_t deadline = unit_mono() + SOON;
	enum plugin_news news;

	while ((news = step(f)) == PLUGIN_NO_NEWS) {
		assert_true(unit_mono() < deadline);
		usleep(500);
	}
	return news;
}

/* A request is to be sent: there is no credential, and a run gets one. */
static void fetch(struct fixture *f)
{
	assert_false(plugin_ready(f->plugin));
	assert_int_equal(run(f), PLUGIN_CREDENTIAL);
	assert_true(plugin_ready(f->plugin));
}

/* A run is wanted, and does not start before `delay` ns from now. */
static void check_waits(struct fixture *f, int64_t delay)
{
	size_t before = runs(f);
	int64_t now = evrec_clock_now(f->clock);

	(void)plugin_ready(f->plugin);
	assert_int_equal(plugin_next_step(f->plugin), delay);
	evrec_clock_set(f->clock, now + delay - 1);
	assert_int_equal(step(f), PLUGIN_NO_NEWS);
	assert_int_equal(plugin_next_step(f->plugin), 1);
	assert_int_equal(runs(f), before);
	evrec_clock_set(f->clock, now + delay);
}

static void test_it_runs_once_a_request_waits(void **state)
{
	struct fixture f;

	open_plugin(&f, *state, CREDENTIAL("\"token\":\"one\""));
	assert_int_equal(step(&f), PLUGIN_NO_NEWS);
	assert_int_equal(plugin_next_step(f.plugin), INT64_MAX);
	assert_int_equal(runs(&f), 0);
	fetch(&f);
	assert_string_equal(f.token, "one");
	set_time(&f, 1000000 * EVREC_SECOND);
	assert_true(plugin_ready(f.plugin)); /* it does not run out */
	assert_int_equal(step(&f), PLUGIN_NO_NEWS);
	assert_int_equal(runs(&f), 1);
	close_plugin(&f);
}

static void test_a_credential_is_renewed_before_it_runs_out(void **state)
{
	struct fixture f;

	open_plugin(&f, *state,
	            CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"2023-11-14T22:15:00Z\"")); /* 100 s */
	fetch(&f);
	plugin_accepted(f.plugin);
	set_time(&f, 90 * EVREC_SECOND - 1);
	assert_true(plugin_ready(f.plugin));
	assert_int_equal(plugin_next_step(f.plugin), INT64_MAX);
	set_command(&f, CREDENTIAL("\"token\":\"two\",\"expirationTimestamp\":\"2023-11-15T22:15:00Z\""), "", "0");
	set_time(&f, 90 * EVREC_SECOND);
	assert_true(plugin_ready(f.plugin)); /* the old one stays in use meanwhile */
	assert_int_equal(run(&f), PLUGIN_CREDENTIAL);
	assert_string_equal(f.token, "two");
	set_time(&f, (24 * 3600 + 100 - 61) * EVREC_SECOND); /* a minute before the end, as it is a long life */
	assert_true(plugin_ready(f.plugin));
	assert_int_equal(plugin_next_step(f.plugin), INT64_MAX);
	set_time(&f, (24 * 3600 + 100 - 60) * EVREC_SECOND);
	assert_true(plugin_ready(f.plugin));
	assert_int_equal(plugin_next_step(f.plugin), 0);
	assert_int_equal(runs(&f), 2);
	close_plugin(&f);
}

/* A plugin whose credential is used for `time` ns. */
static void check_used_for(void *dir, const char *credential, int64_t time)
{
	struct fixture f;

	open_plugin(&f, dir, credential);
	fetch(&f);
	set_time(&f, time - 1);
	assert_true(plugin_ready(f.plugin));
	set_time(&f, time);
	assert_false(plugin_ready(f.plugin));
	close_plugin(&f);
}

static void test_a_credential_is_not_used_when_it_has_run_out(void **state)
{
	check_used_for(*state, CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"2023-11-14T22:15:00Z\""),
	               100 * EVREC_SECOND);
}

static void test_a_credential_that_comes_too_late_is_used_for_30_s(void **state)
{
	check_used_for(*state, CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"2023-11-14T22:00:00Z\""),
	               30 * EVREC_SECOND);
}

static void test_a_credential_of_long_ago_is_used_for_30_s_too(void **state)
{
	check_used_for(*state, CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"1600-01-01T00:00:00Z\""),
	               30 * EVREC_SECOND);
}

static void test_a_credential_until_the_year_9999_does_not_run_out(void **state)
{
	struct fixture f;

	open_plugin(&f, *state, CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"9999-12-31T23:59:59Z\""));
	fetch(&f);
	evrec_clock_set(f.clock, INT64_MAX - 1);
	assert_true(plugin_ready(f.plugin));
	assert_int_equal(plugin_next_step(f.plugin), INT64_MAX);
	assert_int_equal(runs(&f), 1);
	close_plugin(&f);
}

static void test_failures_back_off(void **state)
{
	static const int seconds[] = { 1, 2, 4, 8, 16, 30, 30 };
	struct fixture f;

	open_plugin(&f, *state, "");
	assert_false(plugin_ready(f.plugin));
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		assert_int_equal(run(&f), PLUGIN_FAILED);
		assert_int_equal(runs(&f), i + 1);
		assert_int_equal(plugin_next_step(f.plugin), INT64_MAX); /* nobody wants it */
		check_waits(&f, seconds[i] * EVREC_SECOND);
	}
	set_command(&f, CREDENTIAL("\"token\":\"one\""), "", "0");
	assert_int_equal(run(&f), PLUGIN_CREDENTIAL);
	plugin_accepted(f.plugin);
	set_time(&f, 1000 * EVREC_SECOND);
	plugin_refused(f.plugin);
	set_command(&f, "", "", "0");
	assert_false(plugin_ready(f.plugin));
	assert_int_equal(run(&f), PLUGIN_FAILED);
	check_waits(&f, EVREC_SECOND); /* from the beginning */
	close_plugin(&f);
}

static void test_a_refused_credential_is_replaced(void **state)
{
	struct fixture f;

	open_plugin(&f, *state, CREDENTIAL("\"token\":\"one\""));
	fetch(&f);
	plugin_accepted(f.plugin);
	set_time(&f, 100 * EVREC_SECOND);
	plugin_refused(f.plugin);
	fetch(&f); /* at once */
	assert_int_equal(runs(&f), 2);
	plugin_refused(f.plugin); /* which nobody has ever accepted */
	plugin_refused(f.plugin); /* another request's answer */
	check_waits(&f, EVREC_SECOND);
	fetch(&f);
	plugin_refused(f.plugin);
	check_waits(&f, 2 * EVREC_SECOND);
	close_plugin(&f);
}

static void test_a_run_that_hangs_is_ended(void **state)
{
	evrec_exec exec = { .command = EVREC_STR("sleep"),
		            .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	const evrec_str seconds = EVREC_STR("1000");
	struct fixture f = { .dir = *state, .clock = evrec_clock_fake(T0) };
	struct exec_command *command;
	int fds[2];

	exec.args = &seconds;
	exec.args_len = 1;
	command = exec_command_new(&exec, NULL, &f.err);
	f.plugin = plugin_new(command, f.clock);
	exec_command_release(command);
	assert_false(plugin_ready(f.plugin));
	assert_int_equal(step(&f), PLUGIN_NO_NEWS);
	assert_int_equal(plugin_descriptors(f.plugin, fds), 2);
	assert_false(plugin_ready(f.plugin));
	set_time(&f, PROCESS_TIME_MAX - 1);
	assert_int_equal(step(&f), PLUGIN_NO_NEWS);
	assert_int_equal(plugin_next_step(f.plugin), 1);
	set_time(&f, PROCESS_TIME_MAX);
	assert_int_equal(step(&f), PLUGIN_FAILED);
	assert_string_equal(f.err.message, "exec plugin 'sleep': killed after 30 s");
	assert_int_equal(plugin_descriptors(f.plugin, fds), 0);
	close_plugin(&f);
}

static void check_message(void *dir, const char *output, const char *error, const char *code, const char *message)
{
	struct fixture f;

	open_plugin(&f, dir, output);
	set_command(&f, output, error, code);
	assert_false(plugin_ready(f.plugin));
	assert_int_equal(run(&f), PLUGIN_FAILED);
	assert_string_equal(f.err.message, message);
	close_plugin(&f);
}

/* 160 bytes, in short words. */
#define LINE_OF_WORDS                                                                                                  \
	"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n "                             \
	"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n "

static void test_messages_tell_no_secret(void **state)
{
	const char *good = CREDENTIAL("\"token\":\"secret\"");

	check_message(*state, good, "Unable to locate credentials.\n", "255",
	              "exec plugin 'sh': exit status 255: Unable to locate credentials.");
	check_message(*state, good, "", "1", "exec plugin 'sh': exit status 1");
	check_message(*state, good, "\033[31mred\xff\n", "1", "exec plugin 'sh': exit status 1:  [31mred\xef\xbf\xbd");
	check_message(*state, good, "+ token=k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdzLmNvbS8 /a/b\n", "1",
	              "exec plugin 'sh': exit status 1: + *** /a/b");
	check_message(*state, good,
	              "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY in /usr/share/lib/a/long/path/to/a.file\n", "1",
	              "exec plugin 'sh': exit status 1: key *** in /usr/share/lib/a/long/path/to/a.file");
	check_message(*state, "secret", "", "0",
	              "exec plugin 'sh': its output is no ExecCredential: it is no JSON object");
}

/* The first 160 bytes of a line are kept, and may end inside of a token. */
static void test_a_token_that_is_cut_is_not_told(void **state)
{
	const char *good = CREDENTIAL("\"token\":\"secret\"");
	const char *word = "s3cretABCDEFGHIJKLMNOPQRSTUVWXYZ012345";
	char error[512], message[512];

	for (int before = 150; before <= 160; before += 2) {
		(void)snprintf(error, sizeof(error), "%.*s%s\n", before, LINE_OF_WORDS, word);
		(void)snprintf(message, sizeof(message), "exec plugin 'sh': exit status 1: %.*s%s", before,
		               LINE_OF_WORDS, before < 160 ? "***" : "");
		check_message(*state, good, error, "1", message);
	}
	/* A line of just 160 bytes is not cut. */
	(void)snprintf(error, sizeof(error), "%.151s it is so\n", LINE_OF_WORDS);
	(void)snprintf(message, sizeof(message), "exec plugin 'sh': exit status 1: %.151s it is so", LINE_OF_WORDS);
	check_message(*state, good, error, "1", message);
}

/* After too much output the line on standard error is as far as it was read. */
static void test_a_token_that_was_not_read_to_its_end_is_not_told(void **state)
{
	const char *good = CREDENTIAL("\"token\":\"secret\"");
	char *error = malloc(PROCESS_BYTES_MAX + 32768);

	assert_non_null(error);
	error[0] = '\0';
	for (size_t at = 0; at + 16 < PROCESS_BYTES_MAX + 32768; at += 15) {
		memcpy(error + at, "s3cretABCDEFGH\n", 16);
	}
	check_message(*state, good, error, "1", "exec plugin 'sh': killed after 1048576 bytes of output: ***");
	free(error);
}

static void test_an_unusable_credential_counts_as_a_failure(void **state)
{
	evrec_error err = { 0 };
	struct fixture f;

	open_plugin(&f, *state, CREDENTIAL("\"token\":\"one\""));
	fetch(&f);
	plugin_unusable(f.plugin, "token: too long", &err);
	assert_string_equal(err.message, "exec plugin 'sh': token: too long");
	check_waits(&f, EVREC_SECOND);
	fetch(&f);
	close_plugin(&f);
}

/* Every allocation of a run fails once: that run fails, and the next one has a credential. */
static void test_a_run_without_memory_fails(void **state)
{
	struct unit_allocator allocator = { 0, 1 };
	enum plugin_news news = PLUGIN_FAILED;
	struct fixture f;

	for (size_t i = 1; news == PLUGIN_FAILED; i++) {
		open_plugin(&f, *state, CREDENTIAL("\"token\":\"one\""));
		allocator = (struct unit_allocator){ 0, i };
		evrec_set_allocator(unit_realloc, &allocator);
		assert_false(plugin_ready(f.plugin));
		news = run(&f);
		evrec_set_allocator(NULL, NULL);
		assert_int_equal(news == PLUGIN_FAILED, allocator.calls >= i);
		set_time(&f, EVREC_SECOND);
		if (news == PLUGIN_FAILED) {
			fetch(&f);
		}
		close_plugin(&f);
	}
	assert_true(allocator.fail_at > 2); /* the output, the token */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_it_runs_once_a_request_waits),
		TMPDIR_TEST(test_a_credential_is_renewed_before_it_runs_out),
		TMPDIR_TEST(test_a_credential_is_not_used_when_it_has_run_out),
		TMPDIR_TEST(test_a_credential_that_comes_too_late_is_used_for_30_s),
		TMPDIR_TEST(test_a_credential_of_long_ago_is_used_for_30_s_too),
		TMPDIR_TEST(test_a_credential_until_the_year_9999_does_not_run_out),
		TMPDIR_TEST(test_failures_back_off),
		TMPDIR_TEST(test_a_refused_credential_is_replaced),
		TMPDIR_TEST(test_a_run_that_hangs_is_ended),
		TMPDIR_TEST(test_messages_tell_no_secret),
		TMPDIR_TEST(test_a_token_that_is_cut_is_not_told),
		TMPDIR_TEST(test_a_token_that_was_not_read_to_its_end_is_not_told),
		TMPDIR_TEST(test_a_run_without_memory_fails),
		TMPDIR_TEST(test_an_unusable_credential_counts_as_a_failure),
	};

	return cmocka_run_group_tests_name("exec: plugin", tests, NULL, NULL);
}
