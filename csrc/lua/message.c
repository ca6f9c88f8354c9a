#include "lua/message.h"

#include <stdarg.h>
#include <stdio.h>

/* How many bytes a character of UTF-8 has that begins with this byte. */
static size_t character_len(unsigned char first)
{
	return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

void message_format(char *to, size_t size, const char *format, ...)
{
	size_t begin = size - 1;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(to, size, format, args);
	va_end(args);
	if (len < 0 || (size_t)len < size) {
		return;
	}
	while (begin > 0 && ((unsigned char)to[--begin] & 0xC0) == 0x80) {
	}
	if (character_len((unsigned char)to[begin]) > size - 1 - begin) {
		to[begin] = '\0';
	}
}
