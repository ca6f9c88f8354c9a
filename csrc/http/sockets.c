#include "http/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inode distinguishes it from another socket with the same number. */
static bool is_ours(const struct open_socket *socket)
{
	struct stat st;

	return fstat(socket->fd, &st) == 0 && st.st_ino == socket->inode;
}

/* libcurl 7.88 closes a socket that is not connected yet without on_close. */
static void forget_closed(struct sockets *s)
{
	for (size_t i = 0; i < s->len;) {
		if (is_ours(&s->of[i])) {
			i++;
		} else {
			s->of[i] = s->of[--s->len];
		}
	}
}

/* The system has no room for a socket. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct sockets *s = ctx;
	struct stat st;
	int fd;

	(void)purpose;
	s->error = 0;
	forget_closed(s);
	if (s->len == SOCKETS_MAX) {
		return CURL_SOCKET_BAD;
	}
	s->opened++;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	s->error = fd < 0 && is_shortage(errno) ? errno : 0;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		s->of[s->len++] = (struct open_socket){ fd, st.st_ino };
	}
	return fd;
}

static int on_close(void *ctx, curl_socket_t fd)
{
	struct sockets *s = ctx;

	for (size_t i = 0; i < s->len; i++) {
		if (s->of[i].fd == fd) {
			s->of[i] = s->of[--s->len];
			break;
		}
	}
	return close(fd);
}

bool sockets_set_up(struct sockets *s, CURL *easy)
{
	int failed = 0;

	failed |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, s);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, s);
	return failed == 0;
}

/* Discards received data, too (connect(2) with AF_UNSPEC), which shutdown would leave to be read. */
void sockets_break(const struct sockets *s)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	for (size_t i = 0; i < s->len; i++) {
		if (is_ours(&s->of[i])) {
			(void)connect(s->of[i].fd, &nowhere, sizeof(nowhere));
		}
	}
}

void sockets_hold_back(struct sockets *s, bool hold)
{
	const int on = hold;

	if (hold) {
		forget_closed(s);
	}
	for (size_t i = 0; i < s->len; i++) {
		(void)setsockopt(s->of[i].fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	}
}
