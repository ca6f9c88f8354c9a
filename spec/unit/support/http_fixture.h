/*
 * http_fixture.h - an HTTP client and a stand-in server. The test steps the client; the fixture keeps the last response
 * and the last warning.
 */
#ifndef EVREC_UNIT_HTTP_FIXTURE_H
#define EVREC_UNIT_HTTP_FIXTURE_H

#include "http_server.h"

#include "http/http_client.h"

#define OK(body) HTTP_REPLY("200 OK", "", body)
#define OK_KEEP_ALIVE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

/* A request that has ended. */
struct ended_request {
	struct http_response response; /* its body is no longer valid */
	char body[64];
};

/* The test owns it. */
struct http_fixture {
	struct http_server server;
	struct http_client *client;
	struct http_options options;
	int64_t timeout; /* of the next requests; 0: that of the options */
	unsigned done, warnings;
	void *ctx;                     /* of the last request that ended */
	struct http_response response; /* its response; its body is no longer valid */
	char body[4096];
	char warning[256];
	struct ended_request *all; /* the test's, one for each request; NULL: only the last one is kept */
};

/* Opens a client and a server that answers by these turns. */
void http_fixture_open(struct http_fixture *f, const struct http_turn *turns, size_t turns_len);

/* The parts of it: options with the address of a server that is not started yet; then a client with these options. */
void http_fixture_prepare(struct http_fixture *f, const char *path);
void http_fixture_open_client(struct http_fixture *f);

void http_fixture_close(struct http_fixture *f);

/* Sends a request of 5 bytes, or `len`. False if the client refuses it: `response` says why. */
bool http_fixture_send(struct http_fixture *f, const char *method, const char *path);
bool http_fixture_send_sized(struct http_fixture *f, const char *method, const char *path, size_t len, void *ctx);

/* Steps the client until `done` requests have ended. */
void http_fixture_run_until(struct http_fixture *f, unsigned done);

/* Sends a request and steps the client until it has ended. */
void http_fixture_exchange(struct http_fixture *f);

/*
 * The same with a server that gives no answer. Waits 0.2 s, and longer only on a machine that was too slow to send the
 * request by then. Returns the timeout of the request that was sent.
 */
int64_t http_fixture_exchange_in_vain(struct http_fixture *f);

/* The message of the last response contains `text`. */
void http_fixture_check_message(struct http_fixture *f, const char *text);

#endif
