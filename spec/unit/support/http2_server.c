#define _GNU_SOURCE

#include "http2_server.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static bool h2_read(SSL *connection, unsigned char *to, size_t len)
{
	while (len != 0) {
		int n = SSL_read(connection, to, (int)len);

		if (n <= 0) {
			return false;
		}
		to += n;
		len -= (size_t)n;
	}
	return true;
}

void h2_put(struct buf *out, int type, int flags, uint32_t stream, const void *payload, size_t len)
{
	const unsigned char head[H2_FRAME_HEAD] = {
		(unsigned char)(len >> 16),    (unsigned char)(len >> 8),    (unsigned char)len,
		(unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
		(unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream,
	};

	buf_put(out, head, sizeof(head));
	buf_put(out, payload, len);
}

bool h2_send(SSL *connection, const struct buf *frames)
{
	return SSL_write(connection, frames->data, (int)frames->len) > 0;
}

static bool h2_send_one(SSL *connection, int type, int flags, uint32_t stream, const void *payload, size_t len)
{
	struct buf frame = { 0 };
	bool sent;

	h2_put(&frame, type, flags, stream, payload, len);
	sent = h2_send(connection, &frame);
	buf_free(&frame);
	return sent;
}

void h2_put_response(struct buf *out, uint32_t stream, int status, const char *body)
{
	char head[8]; /* HPACK: a literal, whose name is the static table's 8th */

	(void)snprintf(head, sizeof(head), "\x08\x03%03u", (unsigned)status % 1000);
	h2_put(out, H2_HEADERS, H2_END_HEADERS, stream, head, 5);
	if (body != NULL) {
		h2_put(out, H2_DATA, H2_END_STREAM, stream, body, strlen(body));
	}
}

void h2_put_goaway(struct buf *out, uint32_t last_stream)
{
	const unsigned char payload[8] = { (unsigned char)(last_stream >> 24), (unsigned char)(last_stream >> 16),
		                           (unsigned char)(last_stream >> 8), (unsigned char)last_stream };

	h2_put(out, H2_GOAWAY, 0, 0, payload, sizeof(payload));
}

uint32_t h2_next_request(SSL *connection)
{
	unsigned char payload[65536];
	unsigned char head[H2_FRAME_HEAD];

	while (h2_read(connection, head, sizeof(head))) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		uint32_t stream =
			((uint32_t)head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];

		if (len > sizeof(payload) || !h2_read(connection, payload, len)) {
			return 0;
		}
		if (head[3] == H2_SETTINGS && (head[4] & H2_ACK) == 0 &&
		    !h2_send_one(connection, H2_SETTINGS, H2_ACK, 0, NULL, 0)) {
			return 0;
		}
		if ((head[3] == H2_DATA || head[3] == H2_HEADERS) && (head[4] & H2_END_STREAM) != 0) {
			return stream;
		}
	}
	return 0;
}

static bool is_http1(const struct http2_server *server)
{
	return server->http1_from != 0 && server->accepted > server->http1_from;
}

static int h2_choose_protocol(SSL *connection, const unsigned char **chosen, unsigned char *chosen_len,
                              const unsigned char *offered, unsigned offered_len, void *ctx)
{
	const char *known = is_http1(ctx) ? "\x08http/1.1" : "\x02h2";

	(void)connection;
	return SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, chosen_len, (const unsigned char *)known,
	                             (unsigned)strlen(known), offered, offered_len) == OPENSSL_NPN_NEGOTIATED
	               ? SSL_TLSEXT_ERR_OK
	               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *h2_tls(struct http2_server *server)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	BIO *certificate = BIO_new_mem_buf(PEM_CERTIFICATE, -1), *key = BIO_new_mem_buf(PEM_KEY, -1);
	X509 *x509 = PEM_read_bio_X509(certificate, NULL, NULL, NULL);
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

	assert_int_equal(SSL_CTX_use_certificate(tls, x509), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(tls, pkey), 1);
	SSL_CTX_set_alpn_select_cb(tls, h2_choose_protocol, server);
	X509_free(x509);
	EVP_PKEY_free(pkey);
	(void)BIO_free(certificate);
	(void)BIO_free(key);
	return tls;
}

/* Sends the server's first frames. They open the connection's window as far as possible. */
static bool h2_greet(SSL *connection)
{
	const unsigned char window[4] = { 0x3f, 0xff, 0xff, 0xff };

	return h2_send_one(connection, H2_SETTINGS, 0, 0, NULL, 0) &&
	       h2_send_one(connection, H2_WINDOW_UPDATE, 0, 0, window, sizeof(window));
}

static void *accept_connections(void *ctx)
{
	struct http2_server *server = ctx;
	unsigned char preface[24];
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		SSL *connection = SSL_new(server->tls);

		server->accepted++;
		(void)SSL_set_fd(connection, fd);
		if (SSL_accept(connection) == 1 &&
		    (is_http1(server) || (h2_read(connection, preface, sizeof(preface)) && h2_greet(connection)))) {
			server->serve(connection, server->accepted - 1, server->ctx);
			(void)SSL_shutdown(connection);
		}
		SSL_free(connection);
		close(fd);
	}
	return NULL;
}

void http2_server_start(struct http2_server *server, http2_serve *serve, void *ctx)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	(void)signal(SIGPIPE, SIG_IGN);
	*server = (struct http2_server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		                         .serve = serve,
		                         .ctx = ctx };
	server->tls = h2_tls(server);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(server->listener, 64), 0);
	snprintf(server->url, sizeof(server->url), "https://127.0.0.1:%d", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&server->thread, NULL, accept_connections, server), 0);
}

void http2_server_stop(struct http2_server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	SSL_CTX_free(server->tls);
}
