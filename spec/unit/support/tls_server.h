/*
 * tls_server.h - an HTTPS server in a process of its own, so that the test's process has none of its threads. It answers
 * each request by 201 and closes the connection. Of a request that names a "visitor-N" it remembers that N was there.
 */
#ifndef EVREC_TLS_SERVER_H
#define EVREC_TLS_SERVER_H

#include "pem_data.h"
#include "unit.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TLS_VISITORS 1024
#define TLS_THREADS 8
#define TLS_REPLY "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 16\r\n\r\n{\"kind\":\"Event\"}"

struct tls_server {
	pid_t pid;
	int listener;
	SSL_CTX *tls; /* in the server's process */
	char url[64];
	atomic_bool *visitors; /* shared with the server's process */
};

/* One request, NUL-terminated. False: the client is gone, or sent more than `size`. */
static inline bool tls_read_request(SSL *connection, char *text, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		int n = SSL_read(connection, text + len, (int)(size - 1 - len));
		char *body, *length;

		if (n <= 0) {
			return false;
		}
		len += (size_t)n;
		text[len] = '\0';
		body = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (body != NULL && length != NULL &&
		    len >= (size_t)(body + 4 - text) + strtoul(length + strlen("Content-Length: "), NULL, 10)) {
			return true;
		}
	}
	return false;
}

static inline void tls_serve(struct tls_server *server, SSL *connection)
{
	char request[16384], *name;

	if (SSL_accept(connection) != 1 || !tls_read_request(connection, request, sizeof(request))) {
		return;
	}
	name = strstr(request, "\"visitor-");
	if (name != NULL) {
		server->visitors[strtoul(name + strlen("\"visitor-"), NULL, 10) % TLS_VISITORS] = true;
	}
	(void)SSL_write(connection, TLS_REPLY, (int)strlen(TLS_REPLY));
	(void)SSL_shutdown(connection);
}

static inline void *tls_server_run(void *ctx)
{
	struct tls_server *server = ctx;
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		SSL *connection = SSL_new(server->tls);

		(void)SSL_set_fd(connection, fd);
		tls_serve(server, connection);
		SSL_free(connection);
		close(fd);
	}
	return NULL;
}

static inline SSL_CTX *tls_context(void)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	BIO *certificate = BIO_new_mem_buf(PEM_CERTIFICATE, -1), *key = BIO_new_mem_buf(PEM_KEY, -1);

	(void)SSL_CTX_use_certificate(tls, PEM_read_bio_X509(certificate, NULL, NULL, NULL));
	(void)SSL_CTX_use_PrivateKey(tls, PEM_read_bio_PrivateKey(key, NULL, NULL, NULL));
	(void)SSL_CTX_set_num_tickets(tls, 0);
	return tls;
}

/* Ends with the process that started it, at the latest. */
static inline void tls_server_live(struct tls_server *server)
{
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	server->tls = tls_context();
	for (int i = 1; i < TLS_THREADS; i++) {
		(void)pthread_create(&thread, NULL, tls_server_run, server);
	}
	(void)tls_server_run(server);
	_exit(0);
}

/* On a free port of the loopback address. To be called while the process has one thread. */
static inline void tls_server_start(struct tls_server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*server = (struct tls_server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(server->listener, 128), 0);
	snprintf(server->url, sizeof(server->url), "https://127.0.0.1:%d", ntohs(address.sin_port));
	server->visitors = mmap(NULL, TLS_VISITORS * sizeof(*server->visitors), PROT_READ | PROT_WRITE,
	                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(server->visitors != MAP_FAILED);
	server->pid = fork();
	assert_int_not_equal(server->pid, -1);
	if (server->pid == 0) {
		tls_server_live(server);
	}
	close(server->listener);
}

static inline void tls_server_stop(struct tls_server *server)
{
	(void)kill(server->pid, SIGKILL);
	(void)unit_wait(server->pid);
	(void)munmap(server->visitors, TLS_VISITORS * sizeof(*server->visitors));
}

#endif
