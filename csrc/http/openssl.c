#include "http/openssl.h"

#include <stdatomic.h>

bool openssl_versions_agree(const char *libcurls, const char *own)
{
	static const char prefix[] = "OpenSSL/", own_prefix[] = "OpenSSL ";
	size_t len;

	if (strncmp(libcurls, prefix, strlen(prefix)) != 0 || strncmp(own, own_prefix, strlen(own_prefix)) != 0) {
		return false;
	}
	libcurls += strlen(prefix);
	own += strlen(own_prefix);
	len = strcspn(libcurls, " ");
	return strncmp(own, libcurls, len) == 0 && own[len] == ' ';
}

static bool compare_versions(void)
{
	const char *libcurls = curl_version_info(CURLVERSION_NOW)->ssl_version;

	return libcurls != NULL && openssl_versions_agree(libcurls, openssl_functions.OpenSSL_version(0));
}

bool curl_uses_openssl(void)
{
	enum { UNKNOWN, AGREE, DIFFER };
	static atomic_int known; /* libcurl is asked once, as that takes 1,300 instructions */
	const struct openssl_functions *f = &openssl_functions;
	int versions = atomic_load_explicit(&known, memory_order_relaxed);

	if (f->OpenSSL_version == NULL || f->SSL_CTX_ctrl == NULL || f->SSL_CTX_set_msg_callback == NULL ||
	    f->SSL_get0_alpn_selected == NULL) {
		return false;
	}
	if (versions == UNKNOWN) {
		versions = compare_versions() ? AGREE : DIFFER;
		atomic_store_explicit(&known, versions, memory_order_relaxed);
	}
	return versions == AGREE;
}

bool openssl_chose_http2(CURL *easy)
{
	const struct curl_tlssessioninfo *session = NULL;
	const unsigned char *name = NULL;
	unsigned len = 0;

	if (curl_uses_openssl() && curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) == CURLE_OK &&
	    session != NULL && session->backend == CURLSSLBACKEND_OPENSSL && session->internals != NULL) {
		openssl_functions.SSL_get0_alpn_selected(session->internals, &name, &len);
	}
	return len == strlen("h2") && memcmp(name, "h2", len) == 0;
}
