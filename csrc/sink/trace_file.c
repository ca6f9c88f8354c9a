#include "sink/trace_file.h"

#include "sink/trace_item.h"
#include "spool/private_file.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trace(int fd)
{
	char start[sizeof(TRACE_START) - 1];
	const ssize_t n = pread(fd, start, sizeof(start), 0);

	return n == 0 || (n == (ssize_t)sizeof(start) && memcmp(start, TRACE_START, sizeof(start)) == 0);
}

/* Checks that the file may be replaced, and empties it. */
static bool claim(int fd, const char *path, evrec_error *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		private_file_set_error(err, path, ": another process, or another trace of this one, writes to it");
	} else if (!is_trace(fd)) {
		private_file_set_error(err, path, " is not a trace");
	} else if (ftruncate(fd, 0) != 0) {
		private_file_set_errno(err, path, errno);
	} else {
		private_file_protect(fd);
		return true;
	}
	return false;
}

int trace_file_append(struct trace_file *file, const struct buf *lines)
{
	size_t at = 0;

	if (lines->failed) {
		return ENOMEM;
	}
	while (at < lines->len) {
		const ssize_t n = pwrite(file->fd, lines->data + at, lines->len - at, (off_t)(file->len + at));

		if (n > 0) {
			at += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			const int error = n == 0 ? ENOSPC : errno;

			(void)ftruncate(file->fd, (off_t)file->len);
			return error;
		}
	}
	file->len += at;
	return 0;
}

bool trace_file_open(struct trace_file *file, const struct buf *header, evrec_error *err)
{
	int error;

	file->fd = private_file_open(file->path, err);
	if (file->fd < 0) {
		return false;
	}
	if (claim(file->fd, file->path, err)) {
		error = trace_file_append(file, header);
		if (error == 0) {
			return true;
		}
		private_file_set_errno(err, file->path, error);
	}
	(void)close(file->fd);
	file->fd = -1;
	return false;
}

bool trace_file_is_removed(const struct trace_file *file, evrec_error *err)
{
	if (!private_file_is_removed(file->fd)) {
		return false;
	}
	private_file_set_error(err, file->path, " was removed");
	return true;
}

void trace_file_leave(struct trace_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) == 0) {
		file->left = st.st_mtim;
		file->left_size = st.st_size;
		(void)flock(file->fd, LOCK_UN);
	}
}

bool trace_file_come_back(struct trace_file *file, evrec_error *err)
{
	struct stat st;

	if (file->left.tv_sec == 0) {
		return true;
	}
	if (flock(file->fd, LOCK_EX | LOCK_NB) == 0 && fstat(file->fd, &st) == 0 && st.st_size == file->left_size &&
	    st.st_mtim.tv_sec == file->left.tv_sec && st.st_mtim.tv_nsec == file->left.tv_nsec) {
		return true;
	}
	(void)flock(file->fd, LOCK_UN);
	private_file_set_error(err, file->path, ": another trace has replaced this one");
	return false;
}

void trace_file_close(struct trace_file *file)
{
	if (file->fd >= 0) {
		/* Unlocks explicitly: a child that was forked meanwhile has the file open, and would keep the lock. */
		(void)flock(file->fd, LOCK_UN);
		(void)close(file->fd);
		file->fd = -1;
	}
}
