/*
 * http_server.h - a stand-in for a server that misbehaves on demand: answers one request after the other by a script of
 * turns, on a thread of its own, and keeps the requests. A well-behaved server with TLS is tested in spec/e2e.
 */
#ifndef EVREC_UNIT_HTTP_SERVER_H
#define EVREC_UNIT_HTTP_SERVER_H

#include "unit.h"

#include <pthread.h>

enum turn_kind {
	TURN_REPLY, /* sends the reply and closes the connection */
	TURN_KEEP,  /* sends the reply and keeps the connection for the next turn */
	TURN_RESET, /* sends the reply and resets the connection */
	TURN_FLOOD, /* sends the reply and 100 MB after it */
	TURN_MUTE,  /* sends the reply and waits until the client closes the connection */
	TURN_EARLY, /* sends the reply once it has a request's head, and ends its direction; reads no more */
};

struct http_turn {
	enum turn_kind kind;
	const char *reply; /* bytes of a response; NULL: none */
};

/* Two arguments: an array of turns and its length. */
#define TURNS(...)                                                                                                     \
	(const struct http_turn[]){ __VA_ARGS__ },                                                                     \
		sizeof((const struct http_turn[]){ __VA_ARGS__ }) / sizeof(struct http_turn)

/* Replies after which the server closes the connection. */
#define HTTP_REPLY(status, headers, body) "HTTP/1.1 " status "\r\n" headers "Connection: close\r\n\r\n" body
#define HTTP_NO_PAGE HTTP_REPLY("404 Not Found", "", "404 page not found\n")
#define HTTP_REDIRECT HTTP_REPLY("307 Temporary", "Location: /elsewhere\r\n", "")
#define HTTP_RETRY_AFTER_7 HTTP_REPLY("429 Too Many Requests", "Retry-After: 7\r\n", "slow")

#define HTTP_SERVER_REQUESTS 64

/* The test owns it. While the server runs, its thread alone changes `requests` and their number. */
struct http_server {
	int listener, port;
	char url[96];
	const struct http_turn *turns; /* the caller's; the last turn is repeated */
	size_t turns_len;
	const char *missing; /* requests that contain it are answered with 404, at their turn. NULL: none are */
	size_t longest;      /* requests with a longer body are answered with 413, at their turn; 0: none are */
	pthread_t thread;
	pthread_mutex_t lock;
	char *requests[HTTP_SERVER_REQUESTS]; /* the latest, head and body, each at its number modulo the size */
	size_t requests_len;
	size_t too_long;   /* requests that `longest` refused */
	size_t body_bytes; /* of all requests */
};

/* Chooses a free port of the loopback address; `url` ends with `path`. Connections are refused until the start. */
void http_server_bind(struct http_server *server, const char *path);

/* Starts to answer. The turns must stay valid until the stop. */
void http_server_start(struct http_server *server, const struct http_turn *turns, size_t turns_len);

/* Ends the thread and frees the requests. No client may have an open connection. */
void http_server_stop(struct http_server *server);

/* How many requests came until now. */
size_t http_server_requests(struct http_server *server);

/* Request `n` (from 0) contains `text`; or does not, in any case of letters. */
void http_server_check_saw(struct http_server *server, size_t n, const char *text);
void http_server_check_not_saw(struct http_server *server, size_t n, const char *text);

/* Appends `len` bytes "a" to a reply. */
void http_reply_pad(struct buf *reply, size_t len);

#endif
