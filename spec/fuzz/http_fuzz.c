/*
 * HTTP answers of any bytes, which pass through libcurl to the writes that they answer. A server on the loopback
 * address sends the next answer to each connection, and closes it.
 */
#define _GNU_SOURCE /* accept4 */

#include "fuzz.h"

#include "base/clock.h"
#include "sender/sender.h"
#include "sink/sink.h"
#include "sink/write.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 4
#define SOON (5 * EVREC_SECOND)

/* ---- the server ---- */

struct server {
	int listener, connection; /* -1: none */
	char url[64];
	char request[8192];
	size_t len;
	struct input *replies;
};

static void server_open(struct server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 16) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
	*server = (struct server){ .listener = fd, .connection = -1 };
	(void)snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
}

static bool is_complete(const char *request)
{
	const char *body = strstr(request, "\r\n\r\n"), *length = strstr(request, "Content-Length: ");

	return body != NULL && length != NULL && strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

/* The name that the server gave the event is one segment of the path, whatever its bytes are. */
static bool is_segment(const char *text, size_t len)
{
	char segment[1024];

	CHECK(len < sizeof(segment));
	memcpy(segment, text, len);
	segment[len] = '\0';
	return len != 0 &&
	       strspn(segment, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~%") == len &&
	       strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0 && strstr(segment, "%2F") == NULL &&
	       strstr(segment, "%25") == NULL && strstr(segment, "%00") == NULL;
}

static void check_request(const char *request)
{
	static const char post[] = "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n";
	static const char patch[] = "PATCH /api/v1/namespaces/shop/events/";

	if (strncmp(request, post, sizeof(post) - 1) != 0) {
		const char *name = request + sizeof(patch) - 1;

		CHECK(strncmp(request, patch, sizeof(patch) - 1) == 0);
		CHECK(strstr(name, " HTTP/1.1\r\n") != NULL);
		CHECK(is_segment(name, (size_t)(strchr(name, ' ') - name)));
	}
	CHECK(strstr(request, "\r\nAuthorization: Bearer token\r\n") != NULL);
}

static void server_answer(struct server *server)
{
	evrec_str reply = input_text(server->replies);

	check_request(server->request);
	if (reply.len != 0) {
		(void)send(server->connection, reply.data, reply.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	(void)close(server->connection);
	server->connection = -1;
}

/* Does all that is possible without waiting. */
static void server_step(struct server *server)
{
	ssize_t n;

	if (server->connection < 0) {
		server->connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		server->len = 0;
	}
	if (server->connection < 0) {
		return;
	}
	n = recv(server->connection, server->request + server->len, sizeof(server->request) - 1 - server->len, 0);
	if (n > 0) {
		server->len += (size_t)n;
		server->request[server->len] = '\0';
		if (is_complete(server->request)) {
			server_answer(server);
		}
	} else if (n == 0 || errno != EAGAIN) {
		(void)close(server->connection);
		server->connection = -1;
	}
}

/* ---- the client ---- */

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

static bool submit(struct outbox *ob, enum verb verb, int32_t count, int64_t now)
{
	evrec_fields event;
	const struct write_draft draft = { .last = T0, .count = count, .get_event = get_event, .source = &event };
	const struct occurrence occurrence = { .id = 1, .verb = verb, .important = false, .now = now, .draft = &draft };
	enum evrec_cause cause;

	evrec_fields_init(&event);
	event.ns = event.regarding.ns = EVREC_STR("shop");
	event.regarding.kind = EVREC_STR("Pod");
	event.regarding.name = EVREC_STR("web-0");
	event.name = EVREC_STR("web-0.17979cfe362a0000");
	event.type = EVREC_STR("Normal");
	event.reason = EVREC_STR("Started");
	event.note = EVREC_STR("Started container");
	event.first = event.last = T0;
	event.count = count;
	return outbox_submit(ob, &occurrence, &cause);
}

static struct outbox_stats check_books(struct outbox *ob)
{
	struct outbox_stats stats;
	uint64_t dropped = 0;
	int i;

	outbox_get_stats(ob, &stats);
	for (i = 0; i < EVREC_CAUSES; i++) {
		dropped += stats.dropped[i];
	}
	CHECK(stats.submitted == stats.created + stats.patched + stats.coalesced + stats.pending + dropped);
	return stats;
}

/* Steps until all writes that are due now are answered. */
static void exchange(struct outbox *ob, struct sender *sender, struct server *server, int64_t now)
{
	int64_t deadline = clock_monotonic(evrec_clock_real()) + SOON;

	do {
		CHECK(clock_monotonic(evrec_clock_real()) < deadline);
		sender_step(sender);
		server_step(server);
	} while (check_books(ob).in_flight != 0 || (outbox_next_due(ob, now) <= now && !sender_is_stalled(sender)));
}

static void collect(struct outbox *ob)
{
	struct outbox_message report;
	struct entry *entry;

	while ((entry = outbox_collect(ob, 1)) != NULL) {
		CHECK(strlen(entry_name(entry)) < OUTBOX_NAME_SIZE);
		CHECK(strlen(entry_resource_version(entry)) < sizeof(((struct outcome *)0)->resource_version));
		CHECK(fuzz_is_utf8(str_from(entry_name(entry))));
		outbox_recycle(ob, entry);
	}
	while (outbox_next_message(ob, &report)) {
		CHECK(fuzz_is_utf8(str_from(report.message)));
	}
}

static struct sender *open_sender(const struct server *server, struct outbox *ob, evrec_clock *clock)
{
	const struct sender_options how = { .clock = clock, .drive = EVREC_DRIVE_POLL };
	evrec_kubernetes_options options;

	evrec_kubernetes_options_init(&options);
	options.server = str_from(server->url);
	options.token = EVREC_STR("token");
	return sender_new(ob, kubernetes_protocol_new(&options, write_encode, NULL), &how);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct server server = { .listener = -1 };
	struct input in = { .data = data, .left = size };
	evrec_clock *clock = evrec_clock_fake(0);
	evrec_sink_options common;
	struct outbox *ob;
	struct sender *sender;
	uint8_t choice = input_byte(&in);
	int round;

	if (server.listener < 0) {
		server_open(&server);
	}
	server.replies = &in;
	evrec_sink_options_init(&common);
	common.limits.max_age = 0;
	ob = outbox_new(&write_ops, &common.limits, 1);
	sender = open_sender(&server, ob, clock);
	CHECK(sender != NULL);
	CHECK(submit(ob, choice & 1 ? VERB_PATCH : VERB_CREATE, 1 + (choice & 1), 0));
	for (round = 0; round < ROUNDS && !outbox_empty(ob); round++) {
		int64_t due = outbox_next_due(ob, evrec_clock_now(clock));

		evrec_clock_set(clock, due > 0 ? due : 0);
		sender_step(sender);
		/* The next write uses the name that the answer has. */
		CHECK(submit(ob, VERB_PATCH, 3 + round, evrec_clock_now(clock)));
		exchange(ob, sender, &server, evrec_clock_now(clock));
		collect(ob);
	}
	(void)sender_join(sender, 0);
	(void)check_books(ob);
	sender_release(sender);
	evrec_clock_release(clock);
	if (server.connection >= 0) {
		(void)close(server.connection);
		server.connection = -1;
	}
	input_end(&in);
	return 0;
}
