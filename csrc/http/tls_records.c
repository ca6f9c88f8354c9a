#include "http/tls_records.h"

#include "http/openssl.h"

#define RECORD_HEAD 5

/* Of OpenSSL's headers: */
#define OPENSSL_RECORD_HEAD 256     /* SSL3_RT_HEADER */
#define OPENSSL_SET_CALLBACK_CTX 16 /* SSL_CTRL_SET_MSG_CALLBACK_ARG */

static void tell(const struct tls_records *records, const unsigned char *head)
{
	records->received(records->ctx, (size_t)head[3] << 8 | head[4]);
}

static void on_message(int is_written, int version, int type, const void *data, size_t len, void *connection, void *ctx)
{
	(void)version;
	(void)connection;
	if (is_written == 0 && type == OPENSSL_RECORD_HEAD && len == RECORD_HEAD) {
		tell(ctx, data);
	}
}

/* libcurl makes a connection with this SSL_CTX of OpenSSL's. */
static CURLcode on_context(CURL *easy, void *context, void *ctx)
{
	(void)easy;
	openssl_functions.SSL_CTX_set_msg_callback(context, on_message);
	(void)openssl_functions.SSL_CTX_ctrl(context, OPENSSL_SET_CALLBACK_CTX, 0, ctx);
	return CURLE_OK;
}

static int on_trace(CURL *easy, curl_infotype type, char *data, size_t size, void *ctx)
{
	(void)easy;
	if (type == CURLINFO_SSL_DATA_IN && size == RECORD_HEAD) {
		tell(ctx, (const unsigned char *)data);
	}
	return 0;
}

bool tls_records_watch(const struct tls_records *records, CURL *easy)
{
	int failed = 0;

	if (curl_uses_openssl()) {
		failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, records);
	} else {
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_trace);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGDATA, records);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
	}
	return failed == 0;
}
