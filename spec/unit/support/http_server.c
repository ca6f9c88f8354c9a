#define _GNU_SOURCE

#include "http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* One request from `fd`, or at least its head, NUL-terminated, to be freed; NULL if the client is gone. */
static char *read_request(int fd, bool head)
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
		    (head || length == NULL || len - (size_t)(body + 4 - text) >= strtoul(length + 16, NULL, 10))) {
			return text;
		}
	}
}

static void flood(int fd)
{
	static char block[65536];
	size_t left = 100 * 1000 * 1000;

	memset(block, 'x', sizeof(block));
	while (left > sizeof(block) && send(fd, block, sizeof(block), MSG_NOSIGNAL) > 0) {
		left -= sizeof(block);
	}
}

static void await_close(int fd)
{
	struct pollfd closed = { .fd = fd, .events = POLLRDHUP };

	(void)poll(&closed, 1, (int)(SOON / 1000000));
}

static size_t body_len(const char *request)
{
	const char *body = strstr(request, "\r\n\r\n");

	return body == NULL ? 0 : strlen(body + 4);
}

/* True if the connection is kept. */
static bool take_turn(struct http_server *server, int fd)
{
	struct linger hard = { 1, 0 };
	/* No other thread changes the number. */
	const struct http_turn *turn =
		&server->turns[server->requests_len < server->turns_len ? server->requests_len : server->turns_len - 1];
	char *request = read_request(fd, turn->kind == TURN_EARLY);
	const char *reply = turn->reply;
	bool too_long;
	char byte;

	if (request == NULL) {
		return false;
	}
	too_long = server->longest != 0 && body_len(request) > server->longest;
	if (server->missing != NULL && strstr(request, server->missing) != NULL) {
		reply = HTTP_NO_PAGE;
	} else if (too_long) {
		reply = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
	}
	pthread_mutex_lock(&server->lock);
	free(server->requests[server->requests_len % HTTP_SERVER_REQUESTS]);
	server->requests[server->requests_len++ % HTTP_SERVER_REQUESTS] = request;
	server->too_long += too_long;
	server->body_bytes += body_len(request);
	pthread_mutex_unlock(&server->lock);
	if (reply != NULL) {
		(void)send(fd, reply, strlen(reply), MSG_NOSIGNAL);
	}
	switch (turn->kind) {
	case TURN_RESET:
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		return false;
	case TURN_FLOOD:
		flood(fd);
		return false;
	case TURN_MUTE:
		(void)recv(fd, &byte, 1, 0);
		return false;
	case TURN_EARLY:
		(void)shutdown(fd, SHUT_WR);
		await_close(fd);
		return false;
	default:
		return turn->kind == TURN_KEEP;
	}
}

static void *serve(void *ctx)
{
	struct http_server *server = ctx;
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (take_turn(server, fd)) {
		}
		close(fd);
	}
	return NULL;
}

void http_server_bind(struct http_server *server, const char *path)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*server = (struct http_server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
	server->port = ntohs(address.sin_port);
	(void)snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d%s", server->port, path);
}

void http_server_start(struct http_server *server, const struct http_turn *turns, size_t turns_len)
{
	server->turns = turns;
	server->turns_len = turns_len;
	pthread_mutex_init(&server->lock, NULL);
	assert_int_equal(listen(server->listener, 64), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

void http_server_stop(struct http_server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	for (size_t i = 0; i < HTTP_SERVER_REQUESTS; i++) {
		free(server->requests[i]);
	}
	pthread_mutex_destroy(&server->lock);
}

size_t http_server_requests(struct http_server *server)
{
	size_t n;

	pthread_mutex_lock(&server->lock);
	n = server->requests_len;
	pthread_mutex_unlock(&server->lock);
	return n;
}

void http_server_check_saw(struct http_server *server, size_t n, const char *text)
{
	assert_true(n < http_server_requests(server));
	unit_check_contains(server->requests[n], text);
}

void http_server_check_not_saw(struct http_server *server, size_t n, const char *text)
{
	assert_true(n < http_server_requests(server));
	assert_null(strcasestr(server->requests[n], text));
}

void http_reply_pad(struct buf *reply, size_t len)
{
	while (len-- > 0) {
		buf_put(reply, "a", 1);
	}
}
