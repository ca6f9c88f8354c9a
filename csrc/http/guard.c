#include "http/guard.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * In bytes. Requests under way, 32 by default, may each have a buffer of 16 KiB filled before they are given anything.
 * An empty frame has 9 bytes, and takes about 50 ns; a record by itself some microseconds.
 */
#define SPENT_MAX ((size_t)2 * 1024 * 1024)
#define RECORD_COST 256
#define RECORD_HEAD 5

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct guard *g = ctx;
	struct stat st;
	int fd;

	(void)purpose;
	if (g->sockets_len == GUARD_SOCKETS) {
		return CURL_SOCKET_BAD;
	}
	g->opened++;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd >= 0 && fstat(fd, &st) == 0) {
		g->sockets[g->sockets_len++] = (struct guarded_socket){ fd, st.st_ino };
	}
	return fd;
}

static int on_close(void *ctx, curl_socket_t fd)
{
	struct guard *g = ctx;

	for (size_t i = 0; i < g->sockets_len; i++) {
		if (g->sockets[i].fd == fd) {
			g->sockets[i] = g->sockets[--g->sockets_len];
			break;
		}
	}
	return close(fd);
}

/* Drops what was received too (connect(2)), which shutdown would leave to be read. The inode: is it still ours? */
static void break_connections(struct guard *g)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct stat st;

	for (size_t i = 0; i < g->sockets_len; i++) {
		if (fstat(g->sockets[i].fd, &st) == 0 && st.st_ino == g->sockets[i].inode) {
			(void)connect(g->sockets[i].fd, &nowhere, sizeof(nowhere));
		}
	}
	g->breaks++;
	g->spent = 0;
}

static int on_trace(CURL *easy, curl_infotype type, char *data, size_t size, void *ctx)
{
	const unsigned char *head = (const unsigned char *)data;
	struct guard *g = ctx;

	(void)easy;
	if (type == CURLINFO_SSL_DATA_IN && size == RECORD_HEAD) {
		g->spent += RECORD_COST + ((size_t)head[3] << 8 | head[4]);
		if (g->spent > SPENT_MAX) {
			break_connections(g);
		}
	}
	return 0;
}

bool guard_set_up(struct guard *g, CURL *easy)
{
	int failed = 0;

	failed |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, g);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, g);
	if (curl_version_number() < 0x080700) {
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_trace);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGDATA, g);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
	}
	return failed == 0;
}
