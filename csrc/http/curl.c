#define CURL_WITHOUT_NAMES /* the list of functions is to be that of libcurl's names */
#include "http/curl.h"

#include "base/library.h"

#include <stdatomic.h>

struct curl_functions curl_functions;
struct openssl_functions openssl_functions;

#define ENTRY(name) { #name, (void **)(void *)&curl_functions.name, false },
#define OPENSSL_ENTRY(name) { #name, (void **)(void *)&openssl_functions.name, true },

bool curl_load(evrec_error *err)
{
	static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };
	static const struct library_function functions[] = { CURL_FUNCTIONS(ENTRY) OPENSSL_FUNCTIONS(OPENSSL_ENTRY) };
	static struct library curl = { "libcurl", files, functions, sizeof(functions) / sizeof(functions[0]), false };

	return library_load(&curl, err);
}

unsigned loaded_curl_version(void)
{
	static atomic_uint known;
	unsigned number = atomic_load_explicit(&known, memory_order_relaxed);

	if (number == 0) {
		number = curl_functions.curl_version_info(CURLVERSION_NOW)->version_num;
		atomic_store_explicit(&known, number, memory_order_relaxed);
	}
	return number;
}
