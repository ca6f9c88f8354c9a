#include "base/base.h"
#include "base/utf8.h"

#include <stdio.h>

int error_set(evrec_error *err, int code, const char *format, ...)
{
	va_list args;
	int len;

	if (err == NULL) {
		return code;
	}
	err->code = code;
	va_start(args, format);
	len = vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	if (len >= (int)sizeof(err->message)) {
		err->message[utf8_floor(str_from(err->message), sizeof(err->message) - 1)] = '\0';
	}
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
