#include "kubernetes_fixture.h"

#include <unistd.h>

static bool encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *request)
{
	const char *name = ((const struct fake_write *)item)->name;
	const char *bar = strchr(name, '|');

	if (!fake_write_encode(item, body, api, reader, request)) {
		return false;
	}
	if (strncmp(name, "old-", 4) == 0) {
		request->api = EVREC_CORE_V1;
	}
	if (bar != NULL) {
		mem_free(request->ns);
		mem_free(request->name);
		request->ns = str_dup((evrec_str){ name, (size_t)(bar - name) });
		request->name = str_dup(str_from(bar + 1));
	}
	return true;
}

void kubernetes_fixture_options(evrec_kubernetes_options *options, const char *url)
{
	evrec_kubernetes_options_init(options);
	options->server = str_from(url);
	options->common.limits = limits_without_age(1000);
	options->timeout = SOON;
}

void kubernetes_fixture_open_sender(struct kubernetes_fixture *f, bool threadless)
{
	struct sender_options options = { .clock = f->clock,
		                          .drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO };
	evrec_error err = { 0 };
	struct protocol *p = kubernetes_protocol_new(&f->options, encode, &err);

	assert_string_equal(err.message, "");
	assert_non_null(p);
	assert_true(f->command == NULL || kubernetes_protocol_use(p, f->command, f->clock));
	f->ob = fake_write_outbox(1000);
	f->sender = sender_new(f->ob, p, &options);
	assert_non_null(f->sender);
}

void kubernetes_fixture_prepare(struct kubernetes_fixture *f, const char *path)
{
	fake_writes_begin();
	*f = (struct kubernetes_fixture){ .clock = evrec_clock_fake(0) };
	http_server_bind(&f->server, path);
	kubernetes_fixture_options(&f->options, f->server.url);
}

void kubernetes_fixture_open(struct kubernetes_fixture *f, const struct http_turn *turns, size_t turns_len)
{
	kubernetes_fixture_prepare(f, "");
	http_server_start(&f->server, turns, turns_len);
	kubernetes_fixture_open_sender(f, true);
}

void kubernetes_fixture_close(struct kubernetes_fixture *f)
{
	(void)sender_join(f->sender, 0);
	outbox_check_equation(f->ob);
	sender_release(f->sender);
	http_server_stop(&f->server);
	evrec_clock_release(f->clock);
	assert_int_equal(fake_writes.alive, 0);
}

struct outbox_stats kubernetes_fixture_stats(struct kubernetes_fixture *f)
{
	struct outbox_stats stats;

	outbox_check_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

void kubernetes_fixture_exchange(struct kubernetes_fixture *f, int64_t now)
{
	int64_t deadline = unit_mono() + SOON;

	evrec_clock_set(f->clock, now);
	do {
		assert_true(unit_mono() < deadline);
		sender_step(f->sender);
		usleep(200);
	} while (kubernetes_fixture_stats(f).in_flight != 0 ||
	         (outbox_next_due(f->ob, now) <= now && !sender_is_stalled(f->sender)));
}

bool kubernetes_fixture_submit(struct kubernetes_fixture *f, uint64_t id, enum verb verb, const char *name)
{
	struct fake_write draft = { .count = 1 };
	const struct occurrence occurrence = { .id = id, .verb = verb, .draft = &draft };
	enum evrec_cause cause;

	snprintf(draft.name, sizeof(draft.name), "%s", name);
	return outbox_submit(f->ob, &occurrence, &cause);
}

void kubernetes_fixture_check_message(struct kubernetes_fixture *f, const char *name, const char *text)
{
	struct outbox_message message;

	assert_true(outbox_next_message(f->ob, &message));
	assert_string_equal(message.name, name);
	unit_check_contains(message.message, text);
}
