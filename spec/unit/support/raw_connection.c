#define _GNU_SOURCE /* accept4 */

#include "raw_connection.h"

#include <unistd.h>

int raw_connect(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t len = strlen(name);
	const socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path + 1, name + 1, len - 1);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)&address, address_len) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

int raw_accept(const struct endpoint *e)
{
	return accept4(e->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
