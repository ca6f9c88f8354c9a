#include "base/line.h"

#include "base/nonblocking.h"
#include "base/signals.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* The least length of a secret that is hidden, and of the prefix of a cut one. */
#define SECRET_MIN 4

/* The last line was written to standard error only in part. */
static atomic_bool fragment;

void line_printf(struct line *line, const char *format, ...)
{
	const size_t room = sizeof(line->text) - line->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->text + line->len, room, format, args);
	va_end(args);
	if (len > 0) {
		line->len = (size_t)len < room ? line->len + (size_t)len : sizeof(line->text) - 1;
	}
}

/* Appends all of `piece` or, if it does not fit, nothing. */
static bool put_piece(struct line *line, const char *piece, size_t len)
{
	if (len >= sizeof(line->text) - line->len) {
		return false;
	}
	memcpy(line->text + line->len, piece, len);
	line->len += len;
	line->text[line->len] = '\0';
	return true;
}

static bool put_byte_escaped(struct line *line, unsigned char byte)
{
	char piece[5];
	int len;

	if (byte == '\n' || byte == '\t') {
		len = snprintf(piece, sizeof(piece), "\\%c", byte == '\n' ? 'n' : 't');
	} else {
		len = snprintf(piece, sizeof(piece), "\\x%02X", byte);
	}
	return put_piece(line, piece, (size_t)len);
}

/* The length of the UTF-8 character that `s` begins with; 0: it begins with none. */
static size_t character_length(evrec_str s)
{
	size_t len;

	for (len = 1; len <= 4 && len <= s.len; len++) {
		if (utf8_valid((evrec_str){ s.data, len })) {
			return len;
		}
	}
	return 0;
}

/* C0, DEL, and C1, which is U+0080 to U+009F. */
static bool is_control(const unsigned char *character, size_t len)
{
	return len == 1 ? *character < ' ' || *character == 0x7f : *character == 0xc2 && character[1] < 0xa0;
}

void line_put_escaped(struct line *line, evrec_str s)
{
	while (s.len != 0) {
		const unsigned char *at = (const unsigned char *)s.data;
		size_t len = character_length(s), i, taken = len;

		if (len != 0 && !is_control(at, len)) {
			if (!put_piece(line, s.data, len)) {
				return;
			}
		} else {
			taken = len != 0 ? len : 1;
			for (i = 0; i < taken; i++) {
				if (!put_byte_escaped(line, at[i])) {
					return;
				}
			}
		}
		s.data += taken;
		s.len -= taken;
	}
}

bool evrec_line_to_stderr(const char *line)
{
	char text[EVREC_LINE_SIZE + 2] = "\n"; /* ends a fragment */
	const size_t len = utf8_floor(str_from(line), EVREC_LINE_SIZE - 1);
	size_t at = atomic_load(&fragment) ? 0 : 1, end = len + 2;
	const size_t begin = at;
	struct signals signals;
	ssize_t written = 0;

	memcpy(text + 1, line, len);
	text[end - 1] = '\n';
	signals_block(&signals);
	while (at < end && (written >= 0 || errno == EINTR)) {
		written = nonblocking_write(STDERR_FILENO, text + at, end - at);
		if (written > 0) {
			at += (size_t)written;
		}
	}
	signals_unblock(&signals);
	if (at != begin) {
		atomic_store(&fragment, at != end);
	}
	return at == end;
}

void evrec_log_stderr(void *ctx, const char *message, const char *name)
{
	struct line line = { 0 };

	(void)ctx;
	line_printf(&line, "evrec: %s: ", name);
	line_put_escaped(&line, str_from(message));
	(void)evrec_line_to_stderr(line.text);
}

static void hide(char *text, size_t len)
{
	memset(text, '*', len);
}

void secret_hide(char *text, evrec_str secret)
{
	const size_t len = strlen(text);
	size_t i;

	if (secret.len < SECRET_MIN) {
		return;
	}
	for (i = 0; i + secret.len <= len; i++) {
		if (memcmp(text + i, secret.data, secret.len) == 0) {
			hide(text + i, secret.len);
		}
	}
	for (; i < len; i++) {
		if (len - i >= SECRET_MIN && len - i < secret.len && memcmp(text + i, secret.data, len - i) == 0) {
			hide(text + i, len - i);
		}
	}
}
