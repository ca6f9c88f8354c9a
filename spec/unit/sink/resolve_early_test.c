/* A Kubernetes sink that looks its server's name up when it is made. http/addresses_test.c has names with addresses. */
#include "unit.h"

#include <unistd.h>

struct told {
	unsigned first, all;
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct told *told = ctx;

	told->all++;
	if (strstr(message, "was found when the sink was made: ") != NULL) {
		assert_string_equal(name, "transport");
		assert_int_equal(told->all, 1);
		told->first++;
	}
}

static void record(evrec_recorder *r)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("a"), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .note = EVREC_STR("n"),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
}

/* The resolver refuses a label of more than 63 bytes without asking any server. */
static void test_name_without_an_address_is_told_once(void **state)
{
	const int64_t deadline = unit_mono() + SOON;
	evrec_broadcaster_options of_broadcaster;
	evrec_kubernetes_options options;
	struct buf server = { 0 };
	struct told told = { 0 };
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	evrec_sink *sink;

	(void)state;
	buf_printf(&server, "http://%064d.invalid", 0);
	evrec_kubernetes_options_init(&options);
	options.server = buf_str(&server);
	options.resolve_early = true;
	sink = evrec_sink_kubernetes(&options, NULL);
	assert_non_null(sink);
	evrec_broadcaster_options_init(&of_broadcaster);
	of_broadcaster.drive = EVREC_DRIVE_POLL;
	of_broadcaster.on_error = on_error;
	of_broadcaster.ctx = &told;
	b = evrec_broadcaster_new(&of_broadcaster, NULL);
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	r = evrec_recorder_new(b, NULL, NULL);
	record(r);
	while (told.all < 2) { /* the second one is libcurl's, which tried by itself */
		assert_true(unit_mono() < deadline);
		evrec_broadcaster_poll(b);
		usleep(200);
	}
	record(r);
	(void)evrec_broadcaster_shutdown(b, EVREC_SECOND / 10, NULL);
	assert_int_equal(told.first, 1);
	evrec_recorder_free(r);
	evrec_watch_free(watch);
	evrec_broadcaster_free(b);
	evrec_sink_release(sink);
	buf_free(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_without_an_address_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
