#include "resume_fixture.h"

#include <unistd.h>

static void on_error(void *ctx, const char *message, const char *name)
{
	struct resume_fixture *f = ctx;
	const size_t len = strlen(f->errors);

	(void)snprintf(f->errors + len, sizeof(f->errors) - len, "%s: %s\n", name, message);
}

void resume_reply(struct resume_fixture *f, enum turn_kind kind, const char *text)
{
	assert_true(f->turns_len < RESUME_REPLIES);
	f->turns[f->turns_len++] = (struct http_turn){ kind, text };
}

void resume_item(struct resume_fixture *f, const char *name, const char *instance, int count, int age)
{
	char first[EVREC_RFC3339_SIZE], last[EVREC_RFC3339_SIZE];

	(void)evrec_rfc3339_format(evrec_clock_now(evrec_clock_real()) - 7200 * EVREC_SECOND, true, first);
	(void)evrec_rfc3339_format(evrec_clock_now(evrec_clock_real()) - age * EVREC_SECOND, true, last);
	buf_printf(&f->items,
	           "%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\"},\"eventTime\":\"%s\","
	           "\"reportingController\":\"ctl\",\"reportingInstance\":\"%s\",\"action\":\"Run\",\"reason\":\"Run\","
	           "\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web\"},\"type\":\"Normal\","
	           "\"note\":\"old\"",
	           f->items.len != 0 ? "," : "", name, count < 2 ? last : first, instance);
	if (count >= 2) {
		buf_printf(&f->items, ",\"series\":{\"count\":%d,\"lastObservedTime\":\"%s\"}", count, last);
	}
	buf_printf(&f->items, "}");
}

void resume_page(struct resume_fixture *f, const char *next)
{
	struct buf *text = &f->replies[f->turns_len];

	buf_printf(
		text,
		HTTP_REPLY("200 OK", "", "{\"kind\":\"EventList\",\"metadata\":{\"continue\":\"%s\"},\"items\":[%s]}"),
		next, buf_cstr(&f->items));
	buf_clear(&f->items);
	resume_reply(f, TURN_REPLY, buf_cstr(text));
}

int resume_setup(void **state)
{
	struct resume_fixture *f = calloc(1, sizeof(*f));

	http_server_bind(&f->server, "");
	evrec_kubernetes_options_init(&f->options);
	f->options.server = str_from(f->server.url);
	f->options.common.api = EVREC_SINK_EVENTS_V1;
	f->options.resume = true;
	*state = f;
	return 0;
}

/* Opens a broadcaster with the sink. */
static void open_sink(struct resume_fixture *f)
{
	evrec_broadcaster_options options;
	evrec_recorder_options of_recorder;
	evrec_error err = { 0 };

	evrec_broadcaster_options_init(&options);
	options.drive = EVREC_DRIVE_POLL;
	options.on_error = on_error;
	options.ctx = f;
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, &err);
	assert_non_null(f->b);
	f->sink = evrec_sink_kubernetes(&f->options, &err);
	assert_string_equal(err.message, "");
	f->watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, NULL, &err);
	f->events = evrec_broadcaster_watch(f->b, 100, &err);
	evrec_recorder_options_init(&of_recorder);
	of_recorder.component = EVREC_STR("ctl");
	of_recorder.instance = EVREC_STR("me");
	f->r = evrec_recorder_new(f->b, &of_recorder, &err);
	assert_non_null(f->r);
}

void resume_start(struct resume_fixture *f)
{
	http_server_start(&f->server, f->turns, f->turns_len);
	f->started = true;
	open_sink(f);
}

void resume_record(struct resume_fixture *f, const char *pod)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"), .name = str_from(pod), .ns = EVREC_STR("shop") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &regarding;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("Run");
	emit.note = EVREC_STR("new");
	assert_int_equal(evrec_recorder_emit(f->r, &emit, NULL), 0);
}

void resume_poll_until_requests(struct resume_fixture *f, size_t n)
{
	while (http_server_requests(&f->server) < n) {
		checked_poll(f->b);
		(void)usleep(1000);
	}
}

evrec_sink_stats resume_flush(struct resume_fixture *f)
{
	assert_int_equal(evrec_broadcaster_flush(f->b, SOON, NULL), 0);
	return stats_check_equations(f->b);
}

static void close_sink(struct resume_fixture *f)
{
	evrec_watch_free(f->watch);
	evrec_watch_free(f->events);
	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_sink_release(f->sink);
	f->b = NULL;
}

void resume_restart(struct resume_fixture *f)
{
	assert_int_equal(evrec_broadcaster_shutdown(f->b, SOON, NULL), 0);
	close_sink(f);
	open_sink(f);
}

void resume_leave_in_spool(struct resume_fixture *f, const char *pod)
{
	open_sink(f);
	resume_record(f, pod);
	(void)evrec_broadcaster_shutdown(f->b, 0, NULL);
	assert_int_equal(stats_check_equations(f->b).spooled, 1);
	close_sink(f);
	f->errors[0] = '\0';
}

int resume_teardown(void **state)
{
	struct resume_fixture *f = *state;

	if (f->b != NULL) {
		(void)evrec_broadcaster_shutdown(f->b, 0, NULL);
		close_sink(f);
	}
	if (f->started) {
		http_server_stop(&f->server);
	}
	evrec_clock_release(f->clock);
	for (size_t i = 0; i < RESUME_REPLIES; i++) {
		buf_free(&f->replies[i]);
	}
	buf_free(&f->items);
	free(f);
	return 0;
}
