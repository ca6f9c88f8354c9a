#define _GNU_SOURCE /* strerror_r */

#include "deliver/credentials.h"

#include "deliver/transport.h"

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

static bool read_all(int fd, struct buf *text)
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
	} while ((n > 0 && text->len <= TOKEN_MAX) || (n < 0 && errno == EINTR));
	return n >= 0;
}

char *token_file_read(const char *path, evrec_error *err)
{
	struct buf text = { 0 };
	char reason[64], *token = NULL;
	evrec_str trimmed;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || !read_all(fd, &text)) {
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
	if (fd >= 0) {
		(void)close(fd);
	}
	buf_free(&text);
	return token;
}

bool credentials_init(struct credentials *c, evrec_str token, evrec_str file)
{
	*c = (struct credentials){ 0 };
	if (token.len != 0) {
		c->token = str_dup(token);
		c->version = 1;
	}
	if (file.len != 0) {
		c->file = str_dup(file);
		c->looked = INT64_MIN;
	}
	return (token.len == 0 || c->token != NULL) && (file.len == 0 || c->file != NULL);
}

void credentials_free(struct credentials *c)
{
	mem_free(c->token);
	mem_free(c->file);
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
		/* What cannot be looked at is read, to learn why; the comparison is with the state before reading. */
		if (stat(c->file, &seen) == 0 && same_file(&seen, &c->seen) && c->token != NULL) {
			return 0;
		}
	} else {
		(void)stat(c->file, &seen);
	}
	c->reload = false;
	token = token_file_read(c->file, err);
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
