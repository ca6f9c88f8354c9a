#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

bool file_read_from(int fd, size_t max, struct buf *text)
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
	bool ok = fd >= 0 && file_read_from(fd, max, text);

	if (fd >= 0) {
		error = errno;
		(void)close(fd);
		errno = error;
	}
	return ok;
}

bool file_put_absolute(struct buf *out, evrec_str path)
{
	char folder[PATH_MAX];

	if (path.len == 0 || *path.data != '/') {
		/* Of a folder outside of a chroot the kernel says "(unreachable)". */
		if (getcwd(folder, sizeof(folder)) == NULL || *folder != '/') {
			return false;
		}
		buf_put_str(out, str_from(folder));
		buf_put_str(out, EVREC_STR("/"));
	}
	buf_put_str(out, path);
	return true;
}
