#include "base/base.h"
#include "base/utf8.h"

#include <stdio.h>

int error_set(evrec_error *err, int code, const char *format, ...)
{
	char text[sizeof(err->message) + 4]; /* room to find the beginning of a character that is cut */
	va_list args;

	if (err == NULL) {
		return code;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	err->code = code;
	utf8_copy(err->message, sizeof(err->message), str_from(text));
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
	case EVREC_ELOST:
		return "lost";
	default:
		return "system";
	}
}
