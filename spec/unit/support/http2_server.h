/*
 * http2_server.h - a stand-in for an HTTP/2 server that misbehaves: real TLS with the certificate of pem_data.h, and as
 * few frames as a test needs. A function of the test serves each connection.
 */
#ifndef EVREC_UNIT_HTTP2_SERVER_H
#define EVREC_UNIT_HTTP2_SERVER_H

#include "pem_data.h"
#include "unit.h"

#include <openssl/ssl.h>
#include <pthread.h>

/* Types and flags of frames: RFC 9113, 6. */
enum {
	H2_DATA = 0,
	H2_HEADERS = 1,
	H2_RST_STREAM = 3,
	H2_SETTINGS = 4,
	H2_PING = 6,
	H2_GOAWAY = 7,
	H2_WINDOW_UPDATE = 8
};
enum { H2_ACK = 1, H2_END_STREAM = 1, H2_END_HEADERS = 4 };
#define H2_FRAME_HEAD 9

/* Serves connection `n` (from 0) on the server's thread. The server closes the connection when it returns. */
typedef void http2_serve(SSL *connection, unsigned n, void *ctx);

/* The test owns it. */
struct http2_server {
	int listener;
	char url[64];
	SSL_CTX *tls;
	pthread_t thread;
	http2_serve *serve;
	void *ctx; /* the test's */
	/* From this connection on, the server chooses HTTP/1.1, and `serve` reads and writes that; 0: never. */
	unsigned http1_from;
	unsigned accepted; /* connections */
};

/* Listens on a free port of the loopback address, and serves one connection after the other. */
void http2_server_start(struct http2_server *server, http2_serve *serve, void *ctx);

/* Ends the thread. No client may have an open connection. */
void http2_server_stop(struct http2_server *server);

/* The stream of the next request, once it was read as a whole; 0 if the client has closed the connection. */
uint32_t h2_next_request(SSL *connection);

/* Append to `out`: a frame; a response, of which `body` NULL leaves only the head; the end of all requests. */
void h2_put(struct buf *out, int type, int flags, uint32_t stream, const void *payload, size_t len);
void h2_put_response(struct buf *out, uint32_t stream, int status, const char *body);
void h2_put_goaway(struct buf *out, uint32_t last_stream);

/* Sends frames. False if the client has closed the connection. */
bool h2_send(SSL *connection, const struct buf *frames);

#endif
