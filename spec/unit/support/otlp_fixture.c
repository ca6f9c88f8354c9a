#include "otlp_fixture.h"

#include <jansson.h>
#include <unistd.h>

/* The note is as long as the item's size says. */
static evrec_fields fields(const void *item, enum body body)
{
	static char text[8192];
	const struct fake_write *it = item;
	evrec_fields event;

	(void)body;
	memset(text, 'x', sizeof(text));
	evrec_fields_init(&event);
	event.ns = EVREC_STR("shop");
	event.name = str_from(it->name);
	event.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0") };
	event.type = EVREC_STR("Normal");
	event.reason = EVREC_STR("Started");
	event.count = (int32_t)it->count;
	event.note = it->size == 0 ? EVREC_STR("a note") : (evrec_str){ text, it->size };
	return event;
}

void otlp_fixture_prepare(struct otlp_fixture *f)
{
	fake_writes_begin();
	*f = (struct otlp_fixture){ .clock = evrec_clock_fake(0) };
	http_server_bind(&f->server, "");
	(void)snprintf(f->endpoint, sizeof(f->endpoint), "%s/v1/logs", f->server.url);
	evrec_otlp_options_init(&f->options);
	f->options.endpoint = str_from(f->endpoint);
	f->options.common.limits = limits_without_age(1000);
	f->options.encoding = EVREC_OTLP_JSON;
	f->options.compression = EVREC_OTLP_NONE;
	f->options.timeout = SOON;
	f->options.batch_max = 4;
}

void otlp_fixture_open_sender(struct otlp_fixture *f, bool threadless)
{
	const struct sender_options options = { .clock = f->clock,
		                                .drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO };
	evrec_error err = { 0 };
	struct protocol *p = otlp_protocol_new(&f->options, fields, &err);

	assert_string_equal(err.message, "");
	assert_non_null(p);
	f->ob = fake_write_outbox(1000);
	f->sender = sender_new(f->ob, p, &options);
	assert_non_null(f->sender);
}

void otlp_fixture_open(struct otlp_fixture *f, const struct http_turn *turns, size_t turns_len)
{
	otlp_fixture_prepare(f);
	http_server_start(&f->server, turns, turns_len);
	otlp_fixture_open_sender(f, true);
}

void otlp_fixture_close(struct otlp_fixture *f)
{
	(void)sender_join(f->sender, 0);
	outbox_check_equation(f->ob);
	sender_release(f->sender);
	http_server_stop(&f->server);
	evrec_clock_release(f->clock);
	assert_int_equal(fake_writes.alive, 0);
}

struct outbox_stats otlp_fixture_stats(struct otlp_fixture *f)
{
	struct outbox_stats stats;

	outbox_check_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

void otlp_fixture_submit(struct otlp_fixture *f, unsigned from, unsigned to)
{
	for (unsigned id = from; id <= to; id++) {
		assert_true(fake_write_submit(f->ob, id, 1));
	}
}

void otlp_fixture_exchange(struct otlp_fixture *f, int64_t now)
{
	const int64_t deadline = unit_mono() + SOON;

	evrec_clock_set(f->clock, now);
	do {
		assert_true(unit_mono() < deadline);
		sender_step(f->sender);
		usleep(200);
	} while (otlp_fixture_stats(f).in_flight != 0 ||
	         (outbox_next_due(f->ob, now) <= now && !sender_is_stalled(f->sender)));
}

void otlp_fixture_flush(struct otlp_fixture *f, int64_t now)
{
	outbox_release_all(f->ob, now);
	otlp_fixture_exchange(f, now);
}

static const char *text_at(const json_t *attributes, const char *name)
{
	const json_t *attribute;
	size_t i;

	json_array_foreach(attributes, i, attribute)
	{
		if (strcmp(json_string_value(json_object_get(attribute, "key")), name) == 0) {
			const json_t *value = json_object_get(attribute, "value");

			return json_string_value(json_object_iter_value(json_object_iter((json_t *)value)));
		}
	}
	return "?";
}

static void add_records(struct otlp_fixture *f, const json_t *records)
{
	const json_t *record;
	size_t i;

	json_array_foreach(records, i, record)
	{
		const json_t *attributes = json_object_get(record, "attributes");
		const size_t len = strlen(f->names);

		(void)snprintf(f->names + len, sizeof(f->names) - len, "%s%s:%s", len == 0 ? "" : " ",
		               text_at(attributes, "k8s.event.name"), text_at(attributes, "k8s.event.count"));
	}
}

const char *otlp_fixture_names(struct otlp_fixture *f, size_t n)
{
	const json_t *resource, *scope;
	const char *body;
	json_t *root;
	size_t i, j;

	assert_true(n < http_server_requests(&f->server));
	body = strstr(f->server.requests[n % HTTP_SERVER_REQUESTS], "\r\n\r\n");
	assert_non_null(body);
	root = json_loads(body, 0, NULL);
	assert_non_null(root);
	f->names[0] = '\0';
	json_array_foreach(json_object_get(root, "resourceLogs"), i, resource)
	{
		json_array_foreach(json_object_get(resource, "scopeLogs"), j, scope)
		{
			add_records(f, json_object_get(scope, "logRecords"));
		}
	}
	json_decref(root);
	return f->names;
}

void otlp_fixture_check_message(struct otlp_fixture *f, const char *name, const char *text)
{
	struct outbox_message message;

	assert_true(outbox_next_message(f->ob, &message));
	assert_string_equal(message.name, name);
	unit_check_contains(message.message, text);
}

void otlp_fixture_check_silent(struct otlp_fixture *f)
{
	struct outbox_message message;

	if (outbox_next_message(f->ob, &message)) {
		fail_msg("expected no message, got \"%s: %s\"", message.name, message.message);
	}
}

unsigned otlp_fixture_count_dropped(struct otlp_fixture *f, enum evrec_cause cause)
{
	return (unsigned)otlp_fixture_stats(f).dropped[cause];
}

void otlp_fixture_check_names(struct otlp_fixture *f, size_t request, const char *names)
{
	assert_string_equal(otlp_fixture_names(f, request), names);
}

void otlp_fixture_check_collected(struct otlp_fixture *f, bool dropped, const unsigned *ids)
{
	struct entry *entry;

	for (; *ids != 0; ids++) {
		entry = outbox_collect(f->ob, 1);
		assert_non_null(entry);
		assert_int_equal(entry->id, *ids);
		assert_int_equal(entry->dropped, dropped);
		outbox_recycle(f->ob, entry);
	}
}
