/*
 * openssl.h - asks OpenSSL about libcurl's connections, if libcurl uses OpenSSL as a library of its own.
 */
#ifndef EVREC_OPENSSL_H
#define EVREC_OPENSSL_H

#include "http/curl.h"

#pragma GCC visibility push(hidden)

/* Functions by their names in OpenSSL; NULL: no library that libcurl needs has them. curl_load sets them. */
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

/*
 * Whether libcurl's TLS library is the one that the functions are of, as far as their versions tell: another library than
 * libcurl may have brought an OpenSSL of its own. After curl_load; any thread.
 */
bool curl_uses_openssl(void);
/* Whether "OpenSSL/3.0.19", as libcurl tells it, and "OpenSSL 3.0.19 27 Jan 2026", OpenSSL's own text, are one version. */
bool openssl_versions_agree(const char *libcurls, const char *own);

/*
 * Whether the connection that the handle `easy` has now speaks HTTP/2, by ALPN (RFC 7301). False also if there is no TLS,
 * or if curl_uses_openssl() is false. In a function that libcurl calls, on the client's thread.
 */
bool openssl_chose_http2(CURL *easy);

#pragma GCC visibility pop

#endif
