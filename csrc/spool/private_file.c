#define _GNU_SOURCE /* strerror_r */

#include "spool/private_file.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE (S_IRUSR | S_IWUSR)

bool private_file_is_removed(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

void private_file_set_error(evrec_error *err, const char *path, const char *reason)
{
	(void)error_set(err, EVREC_ESYSTEM, "%.*s%s", path_shown(path), path, reason);
}

void private_file_set_errno(evrec_error *err, const char *path, int error)
{
	char text[64], reason[80] = ": ";

	(void)strncat(reason, strerror_r(error, text, sizeof(text)), sizeof(reason) - sizeof(": "));
	private_file_set_error(err, path, reason);
}

static bool check(const char *path, const struct stat *st, evrec_error *err)
{
	const char *reason = NULL;

	if (S_ISLNK(st->st_mode)) {
		reason = " is a symbolic link";
	} else if (!S_ISREG(st->st_mode)) {
		reason = " is not a regular file";
	} else if (st->st_uid != geteuid() && st->st_uid != 0) {
		reason = " belongs to another user";
	}
	if (reason != NULL) {
		private_file_set_error(err, path, reason);
	}
	return reason == NULL;
}

bool private_file_check(const char *path, evrec_error *err)
{
	struct stat st;

	if (lstat(path, &st) == 0) {
		return check(path, &st, err);
	}
	if (errno != ENOENT) {
		private_file_set_errno(err, path, errno);
		return false;
	}
	return true;
}

int private_file_open(const char *path, evrec_error *err)
{
	struct stat st;
	int fd;

	/* Checked first, as opening a device may have side effects. */
	if (!private_file_check(path, err)) {
		return -1;
	}
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, MODE);
	if (fd < 0) {
		private_file_set_errno(err, path, errno);
		return -1;
	}
	/* The name may refer to another file since the check. */
	if (fstat(fd, &st) != 0) {
		private_file_set_errno(err, path, errno);
	} else if (check(path, &st, err)) {
		return fd;
	}
	(void)close(fd);
	return -1;
}

static bool is_unprotected(const struct stat *st)
{
	return st->st_uid == geteuid() && (st->st_mode & 07777) != MODE;
}

void private_file_protect(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && is_unprotected(&st)) {
		(void)fchmod(fd, MODE);
	}
}

/*
 * glibc before 2.39 changes the mode by way of /proc, which a chroot may lack. Opening and closing the file instead
 * would release the locks that SQLite has by another descriptor of it.
 */
bool private_file_protect_path(const char *path, evrec_error *err)
{
	struct stat st;

	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || !is_unprotected(&st) ||
	    fchmodat(AT_FDCWD, path, MODE, AT_SYMLINK_NOFOLLOW) == 0 || errno != EOPNOTSUPP ||
	    access("/proc/self/fd", F_OK) == 0) {
		return true;
	}
	private_file_set_error(err, path, ": its mode is not 0600, and cannot be changed without /proc");
	return false;
}
