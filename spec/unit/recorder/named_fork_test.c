/* The handles that a forked child has of its parent's broadcasters with names. */
#include "stats_invariants.h"

#include "tmpdir.h"

struct fixture {
	evrec_broadcaster_options options;
	evrec_sink *sink;
};

static evrec_broadcaster *open_handle(const struct fixture *f)
{
	evrec_broadcaster *b = evrec_broadcaster_new(&f->options, NULL);

	assert_non_null(b);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, f->sink, NULL, NULL));
	return b;
}

static int emit(evrec_broadcaster *b, const char *reason)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	evrec_recorder *r = evrec_recorder_new(b, NULL, NULL);
	evrec_emit call;
	int code;

	evrec_emit_init(&call);
	call.regarding = &pod;
	call.type = EVREC_STR("Normal");
	call.reason = evrec_string(reason);
	call.note = EVREC_STR("note");
	code = evrec_recorder_emit(r, &call, NULL);
	evrec_recorder_free(r);
	return code;
}

static evrec_stats stats_of(const evrec_broadcaster *b)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(b, &stats);
	return stats;
}

/* As nginx's worker does if each request has a Lua state: the state that was made before the fork has a handle, too. */
static void live_with_unused_handle(const struct fixture *f, evrec_broadcaster *unused)
{
	for (int i = 0; i < 3; i++) {
		evrec_broadcaster *of_request = open_handle(f);

		if (emit(of_request, "Request") != 0) {
			_exit(1);
		}
		evrec_broadcaster_free(of_request);
	}
	if (emit(unused, "End") != 0 || stats_of(unused).recorded != 4 ||
	    evrec_broadcaster_shutdown(unused, SOON, NULL) != 0) {
		_exit(2);
	}
	evrec_broadcaster_free(unused);
	_exit(0);
}

static void check_unused_handle(const struct fixture *f)
{
	evrec_broadcaster *b = open_handle(f);

	for (int i = 0; i < 2; i++) {
		const pid_t child = fork();

		if (child == 0) {
			live_with_unused_handle(f, b);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	assert_int_equal(stats_of(b).recorded, 0);
	evrec_broadcaster_free(b);
}

static void test_a_handle_that_a_child_has_not_used_keeps_the_broadcaster(void **state)
{
	struct fixture f;
	char share[256];

	if (UNDER_TSAN) {
		skip();
	}
	f.sink = evrec_sink_file(evrec_string(tmpdir_path(*state, "events")), NULL, NULL);
	assert_non_null(f.sink);
	evrec_broadcaster_options_init(&f.options);
	f.options.name = EVREC_STR("unused");
	check_unused_handle(&f);
	evrec_broadcaster_options_init(&f.options);
	(void)snprintf(share, sizeof(share), "@%s", tmpdir_path(*state, "share"));
	f.options.share = evrec_string(share);
	check_unused_handle(&f);
	evrec_sink_release(f.sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_handle_that_a_child_has_not_used_keeps_the_broadcaster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
