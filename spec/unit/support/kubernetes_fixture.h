/*
 * kubernetes_fixture.h - a sender with the protocol of the Kubernetes sink, and a stand-in server. The test steps the
 * sender; its clock is a fake one, at 0.
 */
#ifndef EVREC_UNIT_KUBERNETES_FIXTURE_H
#define EVREC_UNIT_KUBERNETES_FIXTURE_H

#include "fake_write.h"
#include "http_server.h"

#include "sink/sink.h"

#define CREATED(body) HTTP_REPLY("201 Created", "", body)
#define CREATED_KEEP_ALIVE "HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"kind\":\"Event\"}"
#define EVENT "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\",\"resourceVersion\":\"7\"}}"
#define CONFLICT HTTP_REPLY("409 Conflict", "", "{\"kind\":\"Status\",\"message\":\"already exists\"}")

/* The test owns it, and a reference of the clock; the sender owns the outbox. */
struct kubernetes_fixture {
	struct http_server server;
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
	evrec_kubernetes_options options;
	struct exec_command *command; /* gets the credentials; the test's. NULL: none does */
};

/* Opens a sender without a thread, and a server that answers by these turns. */
void kubernetes_fixture_open(struct kubernetes_fixture *f, const struct http_turn *turns, size_t turns_len);

/* The parts of it: options with the address of a server that is not started yet; then a sender with these options. */
void kubernetes_fixture_prepare(struct kubernetes_fixture *f, const char *path);
void kubernetes_fixture_open_sender(struct kubernetes_fixture *f, bool threadless);

/* Options for the server at `url`, which they point to. */
void kubernetes_fixture_options(evrec_kubernetes_options *options, const char *url);

/* Releases sender, server and clock. No fake write is left. */
void kubernetes_fixture_close(struct kubernetes_fixture *f);

/* The outbox's counters, once their equation is checked. */
struct outbox_stats kubernetes_fixture_stats(struct kubernetes_fixture *f);

/*
 * Submits a write named "name" in the namespace "shop", or "namespace|name". "old-..." is encoded in core/v1, whatever the
 * sink's API is. False if the outbox dropped it.
 */
bool kubernetes_fixture_submit(struct kubernetes_fixture *f, uint64_t id, enum verb verb, const char *name);

/* Sets the clock to `now`, and steps the sender until all writes due are answered. */
void kubernetes_fixture_exchange(struct kubernetes_fixture *f, int64_t now);

/* The outbox's next message has this name, and its text contains `text`. */
void kubernetes_fixture_check_message(struct kubernetes_fixture *f, const char *name, const char *text);

#endif
