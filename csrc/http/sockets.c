#include "http/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct sockets *s = ctx;
	struct stat st;
	int fd;

	(void)purpose;
	if (s->len == SOCKETS_MAX) {
		return CURL_SOCKET_BAD;
	}
	s->opened++;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
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

/* Drops what was received too (connect(2)), which shutdown would leave to be read. The inode: is it still ours? */
void sockets_break(const struct sockets *s)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct stat st;

	for (size_t i = 0; i < s->len; i++) {
		if (fstat(s->of[i].fd, &st) == 0 && st.st_ino == s->of[i].inode) {
			(void)connect(s->of[i].fd, &nowhere, sizeof(nowhere));
		}
	}
}

/* Of a socket that is not ours any more, the next write of libcurl's would do more harm than this. */
void sockets_hold_back(const struct sockets *s, bool hold)
{
	const int on = hold;

	for (size_t i = 0; i < s->len; i++) {
		(void)setsockopt(s->of[i].fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	}
}
