/* openssl.h - asks OpenSSL about libcurl's connections, if libcurl links OpenSSL as a shared library. */
#ifndef EVREC_OPENSSL_H
#define EVREC_OPENSSL_H

#include "http/curl.h"

#pragma GCC visibility push(hidden)

/*
 * Whether the functions belong to libcurl's TLS library, by comparing versions: another library may have loaded a
 * different OpenSSL. After curl_load; any thread.
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
