#define CURL_WITHOUT_NAMES /* the list of functions is to be that of libcurl's names */
#include "http/curl.h"

#include "base/library.h"

struct curl_functions curl_functions;

#define ENTRY(name) { #name, (void **)(void *)&curl_functions.name },

bool curl_load(evrec_error *err)
{
	static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };
	static const struct library_function functions[] = { CURL_FUNCTIONS(ENTRY) };
	static struct library curl = { "libcurl", files, functions, sizeof(functions) / sizeof(functions[0]), false };

	return library_load(&curl, err);
}
