/* Bearer tokens, their files, and the times at which a file is read again. */
#define _GNU_SOURCE /* memfd_create */

#include "fuzz.h"

#include "http/credentials.h"

#include <sys/mman.h>
#include <unistd.h>

#define TOKEN_MAX 65536
#define STEPS 8

/* A file in memory, and the path by which it can be opened. */
struct memory_file {
	int fd;
	char path[32];
};

static void file_write(const struct memory_file *file, evrec_str text)
{
	CHECK(ftruncate(file->fd, 0) == 0);
	CHECK(pwrite(file->fd, text.data, text.len, 0) == (ssize_t)text.len);
}

static struct memory_file file_open(void)
{
	struct memory_file file = { .fd = memfd_create("token", MFD_CLOEXEC) };

	CHECK(file.fd >= 0);
	(void)snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	return file;
}

/* A slow check: by a list of the legal characters. */
static bool is_token(evrec_str text)
{
	static const char printable[] = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
	bool may_stand[256] = { false };
	size_t i;

	for (i = 0; i < sizeof(printable) - 1; i++) {
		may_stand[(unsigned char)printable[i]] = true;
	}
	for (i = 0; i < text.len; i++) {
		if (!may_stand[(unsigned char)text.data[i]]) {
			return false;
		}
	}
	return text.len > 0 && text.len <= TOKEN_MAX;
}

static evrec_str trimmed(evrec_str text)
{
	static const char space[] = " \t\n\v\f\r";

	while (text.len > 0 && text.data[0] != '\0' && strchr(space, text.data[0]) != NULL) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && text.data[text.len - 1] != '\0' && strchr(space, text.data[text.len - 1]) != NULL) {
		text.len--;
	}
	return text;
}

static void check_file(const struct memory_file *file, evrec_str text)
{
	evrec_str expected = trimmed(text);
	evrec_error err = { 0 };
	char *token = token_file_read(file->path, &err);

	/* A file that is far too long is not read to its end, so white space at its end is not seen. */
	if (text.len <= TOKEN_MAX) {
		CHECK((token != NULL) == is_token(expected));
	}
	if (token != NULL) {
		CHECK(is_token(str_from(token)));
		CHECK(text.len > TOKEN_MAX || str_eq(str_from(token), expected));
	} else {
		CHECK(err.code == EVREC_EINVALID);
		CHECK(strncmp(err.message, "token_file: ", 12) == 0);
	}
	mem_free(token);
}

/* Writes a file that repeats the text until it is about as long as the longest token. */
static evrec_str repeated(struct input *in, struct buf *out, uint8_t times)
{
	evrec_str text = input_text(in);
	size_t i, n = times < 200 ? 1 : ((size_t)times - 199) * 2048;

	buf_clear(out);
	for (i = 0; i < n && out->len <= TOKEN_MAX + 4096; i++) {
		buf_put_str(out, text);
	}
	CHECK(!out->failed);
	return out->data == NULL ? EVREC_STR("") : buf_str(out);
}

/* A file is read once a second at most, and at once on demand. If it becomes invalid, the token in use stays. */
static void check_refresh(struct credentials *c, const struct memory_file *file, evrec_str text, int64_t now)
{
	evrec_str good = trimmed(text);
	unsigned version = c->version;
	bool asked = c->reload, had = c->token != NULL;
	char *before = had ? str_dup(str_from(c->token)) : NULL;
	evrec_error err = { 0 };
	int code;

	file_write(file, text);
	code = credentials_refresh(c, now, &err);
	CHECK(code == 0 || code == EVREC_EINVALID);
	CHECK(!had || c->token != NULL);
	CHECK(c->token == NULL || is_token(str_from(c->token)));
	CHECK(code != 0 || c->token != NULL);
	CHECK(code == 0 || asked || !had);
	if (had && strcmp(c->token, before) == 0) {
		CHECK(c->version == version);
	} else if (c->token != NULL) {
		CHECK(c->version == version + 1);
		CHECK(text.len > TOKEN_MAX || str_eq(str_from(c->token), good));
	}
	if (asked && text.len <= TOKEN_MAX) {
		CHECK((code == 0) == is_token(good));
		CHECK(code != 0 || str_eq(str_from(c->token), good));
	}
	CHECK(!c->reload);
	mem_free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	struct memory_file file = file_open();
	evrec_str first = input_text(&in), text;
	struct buf scratch = { 0 };
	struct credentials_options options = { .file = str_from(file.path) };
	struct credentials c;
	int64_t now = 0;
	int steps = 0;

	CHECK(token_valid(first) == is_token(first));
	options.token = is_token(first) ? first : EVREC_STR("");
	CHECK(credentials_init(&c, &options));
	while (in.left > 0 && steps++ < STEPS) {
		uint8_t choice = input_byte(&in);

		text = repeated(&in, &scratch, input_byte(&in));
		file_write(&file, text);
		check_file(&file, text);
		c.reload = c.reload || choice & 1;
		now += (choice >> 1) * EVREC_SECOND / 4;
		check_refresh(&c, &file, text, now);
	}
	credentials_free(&c);
	buf_free(&scratch);
	(void)close(file.fd);
	input_end(&in);
	return 0;
}
