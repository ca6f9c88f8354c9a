#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool read_all(int fd, size_t max, struct buf *text)
{
	ssize_t n;

	do {
		if (!buf_reserve(text, 4096)) {
			errno = ENOMEM;
			return false;
		}
		n = read(fd, text->data + text->len, 4096);
		if (n > 0) {
			text->len += (size_t)n;
		}
	} while ((n > 0 && text->len <= max) || (n < 0 && errno == EINTR));
	return n >= 0;
}

bool file_read(const char *path, size_t max, struct buf *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
	bool ok = fd >= 0 && read_all(fd, max, text);

	if (fd >= 0) {
		error = errno;
		(void)close(fd);
		errno = error;
	}
	return ok;
}
