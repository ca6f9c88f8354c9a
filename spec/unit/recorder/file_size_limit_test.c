/*
 * A process may write no large files (RLIMIT_FSIZE). A sink that calls the embedder's functions keeps its spool and its
 * state in polls: SIGXFSZ, which would end the process, is never raised there, and on_error is told.
 */
#define _GNU_SOURCE

#include "file_limit.h"
#include "tmpdir.h"
#include "unit.h"

static unsigned errors;

static void refuse(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	sigset_t mask;

	(void)ctx;
	(void)event;
	/* The embedder's functions run with the embedder's signals. */
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	assert_false(sigismember(&mask, SIGXFSZ));
	answer->status = 503;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)message;
	errors += strcmp(name, ctx) == 0;
}

static evrec_broadcaster *begin(const evrec_sink_options *options, char *name)
{
	static const evrec_sink_ops ops = { .create = refuse };
	evrec_broadcaster_options own;
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_sink *sink = evrec_sink_new(&ops, NULL, options, NULL);

	evrec_broadcaster_options_init(&own);
	own.on_error = on_error;
	own.ctx = name;
	b = evrec_broadcaster_new(&own, NULL);
	assert_non_null(b);
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	assert_non_null(watch);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
	return b;
}

static void record(evrec_broadcaster *b, unsigned n)
{
	evrec_recorder *r = evrec_recorder_new(b, NULL, NULL);
	char name[16];

	while (n-- > 0) {
		evrec_reference pod = { .kind = EVREC_STR("Pod") };
		evrec_emit emit;

		(void)snprintf(name, sizeof(name), "n%u", n);
		pod.name = str_from(name);
		evrec_emit_init(&emit);
		emit.regarding = &pod;
		emit.type = EVREC_STR("Normal");
		emit.reason = EVREC_STR("R");
		assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
	}
	evrec_recorder_free(r);
}

/* Records under the limit, polls, and frees the broadcaster with or without a shutdown. */
static void check(const evrec_sink_options *options, char *name, bool shut_down)
{
	evrec_broadcaster *b = begin(options, name);

	errors = 0;
	file_limit_count_signals();
	file_limit_set(4096);
	record(b, 200);
	for (unsigned i = 0; i < 3; i++) {
		evrec_broadcaster_poll(b);
	}
	if (shut_down) {
		(void)evrec_broadcaster_shutdown(b, 0, NULL);
	}
	assert_true(errors != 0);
	evrec_broadcaster_free(b);
	file_limit_set(RLIM_INFINITY);
	(void)signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(file_limit_signals, 0);
}

static void test_spool(void **state)
{
	evrec_sink_options options;

	for (unsigned i = 0; i < 4; i++) {
		evrec_sink_options_init(&options);
		options.spool = str_from(tmpdir_path(*state, "spool"));
		options.spool_after = 0;
		options.spool_journal = (i & 1) != 0;
		check(&options, "spool", (i & 2) != 0);
	}
}

static void test_state_file(void **state)
{
	evrec_sink_options options;

	for (unsigned i = 0; i < 2; i++) {
		evrec_sink_options_init(&options);
		options.state_file = str_from(tmpdir_path(*state, "state"));
		check(&options, "state", i != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_spool),
		TMPDIR_TEST(test_state_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
