/*
 * http_server.h - a stand-in for an API server: answers requests in turn as a script has it, and keeps what it saw.
 */
#ifndef EVREC_HTTP_SERVER_H
#define EVREC_HTTP_SERVER_H

#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum turn_kind {
	TURN_REPLY, /* and close */
	TURN_KEEP,  /* the connection, for the next turn */
	TURN_RESET, /* of the connection, instead of an answer */
	TURN_FLOOD, /* 100 MB of it */
	TURN_MUTE,  /* until the client goes away */
};

struct turn {
	enum turn_kind kind;
	const char *reply; /* as it is sent */
};

#define SERVER_REQUESTS 64

struct server {
	int listener;
	int port;
	const struct turn *turns; /* the last one is repeated */
	size_t turns_len;
	pthread_t thread;
	pthread_mutex_t lock;
	char *requests[SERVER_REQUESTS]; /* the latest ones whole, head and body */
	size_t requests_len;
};

/* One request from `fd`, NUL-terminated, to be freed; NULL where the client is gone. */
static inline char *server_read(int fd)
{
	size_t len = 0, cap = 2 * 1024 * 1024;
	char *text = calloc(1, cap);

	for (;;) {
		ssize_t n = recv(fd, text + len, cap - 1 - len, 0);
		char *body, *length;

		if (n <= 0) {
			free(text);
			return NULL;
		}
		len += (size_t)n;
		body = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (body != NULL &&
		    (length == NULL || len - (size_t)(body + 4 - text) >= strtoul(length + 16, NULL, 10))) {
			return text;
		}
	}
}

static inline void server_flood(int fd)
{
	static char block[65536];
	size_t left = 100 * 1000 * 1000;

	memset(block, 'x', sizeof(block));
	while (left > sizeof(block) && send(fd, block, sizeof(block), MSG_NOSIGNAL) > 0) {
		left -= sizeof(block);
	}
}

/* True where the connection is kept. */
static inline bool server_turn(struct server *server, int fd)
{
	struct linger hard = { 1, 0 };
	const struct turn *turn;
	char *request = server_read(fd);
	char byte;

	if (request == NULL) {
		return false;
	}
	pthread_mutex_lock(&server->lock);
	turn = &server->turns[server->requests_len < server->turns_len ? server->requests_len : server->turns_len - 1];
	free(server->requests[server->requests_len % SERVER_REQUESTS]);
	server->requests[server->requests_len++ % SERVER_REQUESTS] = request;
	pthread_mutex_unlock(&server->lock);
	if (turn->reply != NULL) {
		(void)send(fd, turn->reply, strlen(turn->reply), MSG_NOSIGNAL);
	}
	switch (turn->kind) {
	case TURN_RESET:
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		return false;
	case TURN_FLOOD:
		server_flood(fd);
		return false;
	case TURN_MUTE:
		(void)recv(fd, &byte, 1, 0);
		return false;
	default:
		return turn->kind == TURN_KEEP;
	}
}

static inline void *server_run(void *ctx)
{
	struct server *server = ctx;
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (server_turn(server, fd)) {
		}
		close(fd);
	}
	return NULL;
}

/* On a free port of the loopback address, which is not listened to yet. */
static inline void server_bind(struct server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*server = (struct server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
	server->port = ntohs(address.sin_port);
}

static inline void server_start(struct server *server, const struct turn *turns, size_t turns_len)
{
	server->turns = turns;
	server->turns_len = turns_len;
	pthread_mutex_init(&server->lock, NULL);
	assert_int_equal(listen(server->listener, 64), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
}

static inline void server_stop(struct server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	for (size_t i = 0; i < SERVER_REQUESTS; i++) {
		free(server->requests[i]);
	}
	pthread_mutex_destroy(&server->lock);
}

static inline size_t server_requests(struct server *server)
{
	size_t n;

	pthread_mutex_lock(&server->lock);
	n = server->requests_len;
	pthread_mutex_unlock(&server->lock);
	return n;
}

#endif
