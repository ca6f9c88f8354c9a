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
	static const struct library_function functions[] = { CURL_FUNCTIONS(ENTRY) OPENSSL_ENTRY(
		OpenSSL_version) OPENSSL_ENTRY(SSL_CTX_ctrl) OPENSSL_ENTRY(SSL_CTX_set_msg_callback) };
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

/* The versions are compared, as another library than libcurl may have brought an OpenSSL of its own. */
bool openssl_is_loaded(void)
{
	static const char before[] = "OpenSSL/", before_own[] = "OpenSSL ";
	const char *used = curl_functions.curl_version_info(CURLVERSION_NOW)->ssl_version, *own;
	size_t len;

	if (openssl_functions.OpenSSL_version == NULL || openssl_functions.SSL_CTX_ctrl == NULL ||
	    openssl_functions.SSL_CTX_set_msg_callback == NULL || used == NULL ||
	    strncmp(used, before, sizeof(before) - 1) != 0) {
		return false;
	}
	used += sizeof(before) - 1;
	len = strcspn(used, " ");
	own = openssl_functions.OpenSSL_version(0); /* such as "OpenSSL 3.0.19 27 Jan 2026" */
	return strncmp(own, before_own, sizeof(before_own) - 1) == 0 &&
	       strncmp(own + sizeof(before_own) - 1, used, len) == 0 && own[sizeof(before_own) - 1 + len] == ' ';
}
