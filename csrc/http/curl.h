/*
 * curl.h - libcurl, in place of <curl/curl.h>. The library is loaded when the first sink that needs it is made, as
 * loading it takes longer than the rest of `require "evrec"`.
 */
#ifndef EVREC_CURL_H
#define EVREC_CURL_H

#include "base/base.h"

#define CURL_DISABLE_TYPECHECK /* those macros call the functions by their names */
#include <curl/curl.h>

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

#pragma GCC visibility push(hidden)

/* clang-format off */
#define CURL_FUNCTIONS(f) \
	f(curl_easy_cleanup) f(curl_easy_duphandle) f(curl_easy_getinfo) f(curl_easy_header) f(curl_easy_init) f(curl_easy_setopt) \
	f(curl_easy_strerror) f(curl_free) f(curl_global_init) f(curl_multi_add_handle) \
	f(curl_multi_cleanup) f(curl_multi_info_read) f(curl_multi_init) f(curl_multi_perform) \
	f(curl_multi_poll) f(curl_multi_remove_handle) f(curl_multi_setopt) f(curl_multi_wakeup) \
	f(curl_slist_append) f(curl_slist_free_all) f(curl_url) f(curl_url_cleanup) f(curl_url_get) \
	f(curl_url_set) f(curl_version_info)
/* clang-format on */

#define CURL_POINTER(name) __typeof__(name) *(name);
struct curl_functions {
	CURL_FUNCTIONS(CURL_POINTER)
};
extern struct curl_functions curl_functions;

/* Functions of OpenSSL, for openssl.h, by their names; NULL: no library that libcurl needs has them. */
struct openssl_functions {
	const char *(*OpenSSL_version)(int type);
	long (*SSL_CTX_ctrl)(void *context, int command, long number, void *pointer);
	void (*SSL_CTX_set_msg_callback)(void *context,
	                                 void (*callback)(int is_written, int version, int type, const void *data,
	                                                  size_t len, void *connection, void *ctx));
	void (*SSL_get0_alpn_selected)(const void *connection, const unsigned char **name, unsigned *len);
};
extern struct openssl_functions openssl_functions;

/* clang-format off */
#define OPENSSL_FUNCTIONS(f) \
	f(OpenSSL_version) f(SSL_CTX_ctrl) f(SSL_CTX_set_msg_callback) f(SSL_get0_alpn_selected)
/* clang-format on */

#ifndef CURL_WITHOUT_NAMES
#define curl_easy_cleanup curl_functions.curl_easy_cleanup
#define curl_easy_duphandle curl_functions.curl_easy_duphandle
#define curl_easy_getinfo curl_functions.curl_easy_getinfo
#define curl_easy_header curl_functions.curl_easy_header
#define curl_easy_init curl_functions.curl_easy_init
#define curl_easy_setopt curl_functions.curl_easy_setopt
#define curl_easy_strerror curl_functions.curl_easy_strerror
#define curl_free curl_functions.curl_free
#define curl_global_init curl_functions.curl_global_init
#define curl_multi_add_handle curl_functions.curl_multi_add_handle
#define curl_multi_cleanup curl_functions.curl_multi_cleanup
#define curl_multi_info_read curl_functions.curl_multi_info_read
#define curl_multi_init curl_functions.curl_multi_init
#define curl_multi_perform curl_functions.curl_multi_perform
#define curl_multi_poll curl_functions.curl_multi_poll
#define curl_multi_remove_handle curl_functions.curl_multi_remove_handle
#define curl_multi_setopt curl_functions.curl_multi_setopt
#define curl_multi_wakeup curl_functions.curl_multi_wakeup
#define curl_slist_append curl_functions.curl_slist_append
#define curl_slist_free_all curl_functions.curl_slist_free_all
#define curl_url curl_functions.curl_url
#define curl_url_cleanup curl_functions.curl_url_cleanup
#define curl_url_get curl_functions.curl_url_get
#define curl_url_set curl_functions.curl_url_set
#define curl_version_info curl_functions.curl_version_info
#endif

/*
 * Sets the functions of libcurl and OpenSSL. Before the first call of another function. Idempotent; any thread. False:
 * EVREC_ESYSTEM.
 */
bool curl_load(evrec_error *err);

/* The version, as 0x075801 for 7.88.1. After curl_load; any thread. Asks libcurl once, which takes 1,300 instructions. */
unsigned loaded_curl_version(void);

#pragma GCC visibility pop

#endif
