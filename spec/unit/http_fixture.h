/*
 * http_fixture.h - the HTTP transport and a stand-in server. Steps are the test's, and time stands still.
 */
#ifndef EVREC_HTTP_FIXTURE_H
#define EVREC_HTTP_FIXTURE_H

#include "http_server.h"
#include "items.h"

#include "base/clock.h"

#include <fcntl.h>

#define OK(body) "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" body
#define KEPT "HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"kind\":\"Event\"}"
#define EVENT "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\",\"resourceVersion\":\"7\"}}"
#define CONFLICT                                                                                                       \
	"HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n{\"kind\":\"Status\",\"message\":\"already exists\"}"
#define SOON (20 * EVREC_SECOND)

/* An item's name is "namespace|name"; "large" is one of 1.2 MB. */
static inline bool encode(const void *item, enum body body, struct request *request)
{
	const char *name = ((const struct item *)item)->name;
	const char *bar = strchr(name, '|');

	if (!item_encode(item, body, request)) {
		return false;
	}
	if (strcmp(name, "large") == 0) {
		/* So large that libcurl would rather ask before it sends it. */
		mem_free(request->body);
		request->body_len = 1200 * 1024;
		request->body = mem_zalloc(request->body_len);
		memset(request->body, 'x', request->body_len);
	}
	if (bar != NULL) {
		mem_free(request->ns);
		mem_free(request->name);
		request->ns = str_dup((evrec_str){ name, (size_t)(bar - name) });
		request->name = str_dup(str_from(bar + 1));
	}
	return true;
}

struct fixture {
	struct server server;
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
	evrec_kubernetes_options options;
	char url[64];
};

static inline void options_of(evrec_kubernetes_options *options, const char *url)
{
	*options = (evrec_kubernetes_options){
		.server = str_from(url),
		.max_in_flight = 32,
		.limits = limits_of(1000),
		.timeout = SOON,
	};
}

static inline void open_sender(struct fixture *f, bool threadless)
{
	struct sender_options options = { .max_in_flight = 32, .clock = f->clock, .threadless = threadless };
	evrec_error err = { 0 };
	struct transport *t = http_transport_new(&f->options, encode, &err);

	assert_string_equal(err.message, "");
	assert_non_null(t);
	f->ob = items_outbox(1000);
	f->sender = sender_new(f->ob, t, &options);
	assert_non_null(f->sender);
}

static inline void prepare(struct fixture *f, const char *path)
{
	*f = (struct fixture){ .clock = evrec_clock_fake(0) };
	server_bind(&f->server);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d%s", f->server.port, path);
	options_of(&f->options, f->url);
}

static inline void open_fixture(struct fixture *f, const struct turn *turns, size_t turns_len)
{
	prepare(f, "");
	server_start(&f->server, turns, turns_len);
	open_sender(f, true);
}

#define TURNS(...)                                                                                                     \
	(const struct turn[]){ __VA_ARGS__ }, sizeof((const struct turn[]){ __VA_ARGS__ }) / sizeof(struct turn)

static inline void close_fixture(struct fixture *f)
{
	(void)sender_join(f->sender, 0);
	assert_equation(f->ob);
	sender_release(f->sender);
	server_stop(&f->server);
	evrec_clock_release(f->clock);
	assert_int_equal(items_alive, 0);
}

static inline struct outbox_stats stats_of(struct fixture *f)
{
	struct outbox_stats stats;

	assert_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

/* Steps until what is due at `now` is answered. */
static inline void exchange_at(struct fixture *f, int64_t now)
{
	int64_t deadline = clock_monotonic(evrec_clock_real()) + SOON;

	evrec_clock_set(f->clock, now);
	do {
		assert_true(clock_monotonic(evrec_clock_real()) < deadline);
		sender_step(f->sender);
		usleep(200);
	} while (stats_of(f).in_flight != 0 || outbox_next_due(f->ob, now) <= now);
}

static inline bool submit_named(struct fixture *f, uint64_t id, enum verb verb, const char *name)
{
	struct item draft = { .count = 1 };
	const struct occurrence occurrence = { id, verb, false, 0, &draft };
	enum evrec_cause cause;

	snprintf(draft.name, sizeof(draft.name), "%s", name);
	return outbox_submit(f->ob, &occurrence, &cause);
}

static inline void assert_saw(struct fixture *f, size_t n, const char *text)
{
	assert_true(n < server_requests(&f->server));
	if (strstr(f->server.requests[n], text) == NULL) {
		fail_msg("\"%s\" is not in:\n%s", text, f->server.requests[n]);
	}
}

static inline void assert_saw_not(struct fixture *f, size_t n, const char *text)
{
	assert_true(n < server_requests(&f->server));
	assert_null(strcasestr(f->server.requests[n], text));
}

static inline void assert_report(struct fixture *f, const char *name, const char *text)
{
	struct outbox_report report;

	assert_true(outbox_next_report(f->ob, &report));
	assert_string_equal(report.name, name);
	if (strstr(report.message, text) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", text, report.message);
	}
}

static inline void write_token(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

#endif
