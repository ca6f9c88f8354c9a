#include "base/base.h"
#include "base/utf8.h"

#include <stdio.h>

int error_set(evrec_error *err, int code, const char *format, ...)
{
	char text[sizeof(err->message) + 4]; /* room to see whether a character was cut */
	va_list args;
	size_t len;

	if (err == NULL) {
		return code;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	len = utf8_floor(str_from(text), sizeof(err->message) - 1);
	err->code = code;
	memcpy(err->message, text, len);
	err->message[len] = '\0';
	return code;
}

const char *evrec_code_name(int code)
{
	switch (code) {
	case EVREC_OK:
		return "ok";
	case EVREC_EINVALID:
		return "invalid";
	case EVREC_EDROPPED:
		return "dropped";
	case EVREC_ECLOSED:
		return "closed";
	case EVREC_ENOMEM:
		return "memory";
	case EVREC_ETIMEOUT:
		return "timeout";
	default:
		return "system";
	}
}
