#define _GNU_SOURCE /* strerror_r, O_PATH */

#include "http/credentials.h"

#include "base/file.h"
#include "http/pem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TOKEN_MAX 65536
#define LOOK_EVERY EVREC_SECOND

bool token_valid(evrec_str token)
{
	for (size_t i = 0; i < token.len; i++) {
		if (token.data[i] <= ' ' || token.data[i] > '~') {
			return false;
		}
	}
	return token.len != 0 && token.len <= TOKEN_MAX;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Sets *length to that of the folder's path, and returns the file's name. */
static const char *split(const char *path, size_t *length)
{
	const char *slash = strrchr(path, '/');

	*length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
	return path + *length;
}

int token_folder_open(const char *path)
{
	size_t length;
	char *folder;
	int fd;

	(void)split(path, &length);
	folder = str_dup(length == 0 ? EVREC_STR(".") : (evrec_str){ path, length });
	if (folder == NULL) {
		return -1;
	}
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	mem_free(folder);
	return fd;
}

/* The path is tried first: it may have a link that was changed. */
static bool read_file(const char *path, int folder, struct buf *text)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	int fd = open(path, flags), error = errno;
	size_t length;
	bool ok;

	if (fd < 0 && folder >= 0) {
		fd = openat(folder, split(path, &length), flags);
	}
	if (fd < 0) {
		errno = error;
		return false;
	}
	ok = file_read_from(fd, TOKEN_MAX, text);
	error = errno;
	(void)close(fd);
	errno = error;
	return ok;
}

static bool look_at(const struct credentials *c, struct stat *seen)
{
	size_t length;

	return stat(c->file, seen) == 0 ||
	       (c->folder >= 0 && fstatat(c->folder, split(c->file, &length), seen, 0) == 0);
}

static char *read_token(const char *path, int folder, evrec_error *err)
{
	struct buf text = { 0 };
	char reason[64], *token = NULL;
	evrec_str trimmed;

	if (!read_file(path, folder, &text)) {
		error_set(err, text.failed ? EVREC_ENOMEM : EVREC_EINVALID, "token_file: %s: %s", path,
		          strerror_r(errno, reason, sizeof(reason)));
	} else {
		trimmed = buf_str(&text);
		while (trimmed.len != 0 && is_space(trimmed.data[trimmed.len - 1])) {
			trimmed.len--;
		}
		while (trimmed.len != 0 && is_space(*trimmed.data)) {
			trimmed.data++;
			trimmed.len--;
		}
		if (!token_valid(trimmed)) {
			error_set(err, EVREC_EINVALID, "token_file: %s: does not hold a token", path);
		} else {
			token = str_dup(trimmed);
			if (token == NULL) {
				error_set(err, EVREC_ENOMEM, "token_file: no memory");
			}
		}
	}
	buf_free(&text);
	return token;
}

char *token_file_read(const char *path, evrec_error *err)
{
	return read_token(path, -1, err);
}

bool credentials_init(struct credentials *c, const struct credentials_options *options)
{
	*c = (struct credentials){ .looked = INT64_MIN, .folder = -1 };
	c->version = options->token.len != 0 || options->certificate.len != 0;
	return str_copy(&c->token, options->token) && str_copy(&c->file, options->file) &&
	       str_copy(&c->certificate, options->certificate) && str_copy(&c->key, options->key) &&
	       key_files_init(&c->files, options->certificate_file, options->key_file);
}

void credentials_free(struct credentials *c)
{
	mem_free(c->token);
	mem_free(c->file);
	mem_free(c->certificate);
	mem_free(c->key);
	key_files_free(&c->files);
	if (c->folder >= 0) {
		(void)close(c->folder);
	}
}

void credentials_keep_folder(struct credentials *c, int folder)
{
	c->folder = fcntl(folder, F_DUPFD_CLOEXEC, 0);
}

static int check(const struct credentials_options *options, evrec_error *err)
{
	const char *fault;

	if (options->token.len != 0 && !token_valid(options->token)) {
		return error_set(err, EVREC_EINVALID, TOKEN_FAULT);
	}
	if (options->certificate.len != 0 && (fault = pem_certificate_fault(options->certificate)) != NULL) {
		return error_set(err, EVREC_EINVALID, "client_certificate: %s", fault);
	}
	if (options->key.len != 0 && (fault = pem_key_fault(options->key)) != NULL) {
		return error_set(err, EVREC_EINVALID, "client_key: %s", fault);
	}
	return 0;
}

static void swap(char **old, char **new)
{
	char *was = *old;

	*old = *new;
	*new = was;
}

int credentials_replace(struct credentials *c, const struct credentials_options *options, evrec_error *err)
{
	struct credentials new;
	int code = check(options, err);

	if (code != 0) {
		return code;
	}
	if (credentials_init(&new, options)) {
		swap(&c->token, &new.token);
		if (options->certificate.len != 0) {
			swap(&c->certificate, &new.certificate);
			swap(&c->key, &new.key);
			key_files_free(&c->files);
		}
		c->version++;
	} else {
		code = error_set(err, EVREC_ENOMEM, "no memory for the credentials");
	}
	credentials_free(&new);
	return code;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int credentials_refresh(struct credentials *c, int64_t now, evrec_error *err)
{
	bool needed = c->reload || c->token == NULL;
	struct stat seen = { 0 };
	char *token;

	if (c->file == NULL) {
		return 0;
	}
	if (!c->reload) {
		if (c->looked != INT64_MIN && time_since(now, c->looked) < LOOK_EVERY) {
			return c->token != NULL
			               ? 0
			               : error_set(err, EVREC_EINVALID, "token_file: %s: no token yet", c->file);
		}
		c->looked = now;
		/*
		 * A file whose status is unavailable is read, for the error; the comparison is with the status before
		 * reading.
		 */
		if (look_at(c, &seen) && same_file(&seen, &c->seen) && c->token != NULL) {
			return 0;
		}
	} else {
		(void)look_at(c, &seen);
	}
	c->reload = false;
	token = read_token(c->file, c->folder, err);
	if (token == NULL) {
		return needed ? EVREC_EINVALID : 0;
	}
	c->seen = seen;
	if (c->token == NULL || strcmp(c->token, token) != 0) {
		c->version++;
	}
	mem_free(c->token);
	c->token = token;
	return 0;
}

int credentials_refresh_pair(struct credentials *c, int64_t now, bool *changed, evrec_error *err)
{
	struct key_pair pair;
	int code = key_files_refresh(&c->files, now, &pair, err);

	*changed =
		pair.certificate != NULL && (c->certificate == NULL || strcmp(c->certificate, pair.certificate) != 0 ||
	                                     c->key == NULL || strcmp(c->key, pair.key) != 0);
	if (*changed) {
		swap(&c->certificate, &pair.certificate);
		swap(&c->key, &pair.key);
		c->version++;
	}
	key_pair_free(&pair);
	return code;
}

void credentials_reload(struct credentials *c)
{
	c->reload = c->files.reload = true;
}
