#include "base/clock.h"
#include "http/http_client_inner.h"
#include "http/openssl.h"

#define STORED_MAX ((size_t)256 * 1024)

static long milliseconds(int64_t ns)
{
	return (long)((ns + 999999) / 1000000);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t len = size * n, room = t->max_body - t->body.len;

	guard_rewind(&t->client->guard);
	if (t->streamed && transfer_status(t) / 100 == 2) {
		return t->client->events.chunk(t->client->owner, t->ctx, (evrec_str){ data, len }) ? len : 0;
	}
	t->received += len;
	if (t->received > RECEIVED_MAX) {
		return 0;
	}
	buf_put(&t->body, data, len < room ? len : room);
	return t->body.failed ? 0 : len;
}

/*
 * Before 8.1.1 (curl issue 11101), if the first header of a handle's second answer begins with a space, libcurl appends
 * it to a header of the first answer, whose memory is free by then. HTTP/2 has no such header. So a handle that has had
 * an answer sends no request over HTTP/1: on_start refuses, before anything is sent.
 */
static bool is_safe(const struct transfer *t)
{
	return !t->used || !t->client->http1 || loaded_curl_version() >= 0x080101;
}

/* The connection is established, and the request is about to be sent. */
static int on_start(void *ctx, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
	struct transfer *t = ctx;

	(void)remote_ip;
	(void)local_ip;
	(void)remote_port;
	t->client->http1 = !openssl_chose_http2(t->easy);
	if (!is_safe(t)) {
		return CURL_PREREQFUNC_ABORT;
	}
	t->port = local_port;
	t->starts++;
	t->started = clock_monotonic(evrec_clock_real());
	return CURL_PREREQFUNC_OK;
}

static int set_blob(CURL *easy, CURLoption option, char *pem, unsigned flags)
{
	struct curl_blob blob = { pem, strlen(pem), flags };

	return (int)curl_easy_setopt(easy, option, &blob);
}

static bool set_tls(CURL *easy, struct http_client *client)
{
	int failed = 0;

	if (client->ca != NULL) {
		failed |= set_blob(easy, CURLOPT_CAINFO_BLOB, client->ca, CURL_BLOB_NOCOPY);
		client->ca_unsupported = failed == CURLE_NOT_BUILT_IN;
		failed |= (int)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* else the system's count as well */
	}
	/* Each handle would keep sessions of its own: much memory, and checks left out, for few connections. */
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, client->insecure ? 0L : 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, client->insecure ? 0L : 2L);
	return failed == 0;
}

/* Sets the options that are the same for every request. */
static bool set_up(struct transfer *t)
{
	struct http_client *client = t->client;
	CURL *easy = t->easy;
	int failed = 0;

	failed |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	failed |=
		(int)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a hanging name server must not delay closing */
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_USERAGENT, "evrec/" EVREC_VERSION);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(client->connect_timeout));
	failed |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, client->send_buffer);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_start);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	return failed == 0 && set_tls(easy, client) && sockets_set_up(&t->client->sockets, easy) &&
	       guard_set_up(&t->client->guard, &t->client->sockets, easy);
}

/* Replaces the easy handle by a new one. False: no memory, and the old one stays. */
static bool renew(struct transfer *t)
{
	CURL *old = t->easy;

	t->easy = curl_easy_init();
	if (t->easy == NULL || !set_up(t)) {
		curl_easy_cleanup(t->easy);
		t->easy = old;
		return false;
	}
	curl_easy_cleanup(old);
	t->version = 0;
	t->used = false;
	return true;
}

struct transfer *transfer_new(struct http_client *client)
{
	struct transfer *t = mem_zalloc(sizeof(*t));

	if (t == NULL) {
		return NULL;
	}
	t->client = client;
	if (!renew(t)) {
		transfer_free(t);
		return NULL;
	}
	return t;
}

void transfer_free(struct transfer *t)
{
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	mem_free(t->sent);
	buf_free(&t->body);
	mem_free(t);
}

static bool put_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*list, header);

	if (longer != NULL) {
		*list = longer;
	}
	return longer != NULL;
}

static bool put_joined_header(struct transfer *t, evrec_str name, const char *separator, evrec_str value)
{
	struct buf text = { 0 };
	bool put;

	buf_put_str(&text, name);
	buf_put_str(&text, str_from(separator));
	buf_put_str(&text, value);
	(void)buf_cstr(&text);
	put = !text.failed && put_header(&t->headers, text.data);
	buf_free(&text);
	return put;
}

/*
 * Adds the headers of the options. libcurl sends a header without a value if it has a semicolon in place of the colon.
 */
static bool put_own_headers(struct transfer *t)
{
	const evrec_map *headers = &t->client->headers;
	bool put = true;

	for (size_t i = 0; put && i < headers->len; i++) {
		const evrec_pair *header = &headers->pairs[i];

		put = put_joined_header(t, header->key, header->value.len == 0 ? ";" : ": ", header->value);
	}
	return put;
}

/*
 * Makes the headers, unless they exist. The empty Expect keeps libcurl from sending its own, which costs a round trip.
 * The token is a header here, as libcurl would format CURLOPT_XOAUTH2_BEARER for each request, byte by byte: with 1,100
 * bytes, 23,000 of 238,000 instructions of a write.
 */
static bool set_headers(struct transfer *t, const char *content_type)
{
	const char *accept = t->client->accept, *encoding = t->client->encoding;
	const struct credentials *c = &t->client->credentials;

	if (t->content_type == content_type && t->version == c->version) {
		return true;
	}
	(void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	t->content_type = NULL;
	if (put_joined_header(t, EVREC_STR("Content-Type"), ": ", str_from(content_type)) &&
	    (c->token == NULL || put_joined_header(t, EVREC_STR("Authorization"), ": Bearer ", str_from(c->token))) &&
	    put_header(&t->headers, "Expect:") && (accept == NULL || put_header(&t->headers, accept)) &&
	    (encoding == NULL || put_header(&t->headers, encoding)) && put_own_headers(t)) {
		t->content_type = content_type;
	}
	return t->content_type != NULL;
}

/* Copies the certificate, as it may be replaced while a request is under way. */
static int set_certificate(struct transfer *t, const struct credentials *c)
{
	int failed = 0;

	if (t->version == c->version) {
		return 0;
	}
	t->version = 0;
	if (c->certificate != NULL) {
		failed |= set_blob(t->easy, CURLOPT_SSLCERT_BLOB, c->certificate, CURL_BLOB_COPY);
		failed |= set_blob(t->easy, CURLOPT_SSLKEY_BLOB, c->key, CURL_BLOB_COPY);
		/*
		 * Always set: without a password, libcurl ends the process if OpenSSL asks for one, and
		 * http_check_options may miss an encrypted key.
		 */
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_KEYPASSWD, "");
	}
	t->version = failed == 0 ? c->version : 0;
	return failed;
}

static bool set_request(struct transfer *t, const struct http_request *request)
{
	const struct http_client *client = t->client;
	struct buf url = { 0 };
	int failed = 0;

	if (!set_headers(t, request->content_type)) {
		return false;
	}
	buf_printf(&url, "%s%s", client->server, request->path);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_URL, buf_cstr(&url));
	failed |= url.failed;
	buf_free(&url);
	if (t->sent == NULL) {
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
	} else {
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->sent);
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
	}
	/*
	 * Set for each request: an easy handle passes them to the multi handle once, and there may be a new multi
	 * handle.
	 */
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_RESOLVE, client->addresses);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, request->method);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, milliseconds(t->timeout));
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	failed |= set_certificate(t, &client->credentials);
	return failed == 0;
}

bool transfer_prepare(struct transfer *t, const struct http_request *request)
{
	t->ctx = request->ctx;
	t->sent = request->body;
	t->sent_len = request->body_len;
	t->starts = 0;
	t->port = 0;
	t->breaks = t->client->guard.breaks;
	t->received = 0;
	t->timeout = request->timeout != 0 ? request->timeout : t->client->timeout;
	t->streamed = request->streamed;
	t->max_body = request->max_answer != 0 ? request->max_answer : STORED_MAX;
	t->error[0] = '\0';
	buf_clear(&t->body);
	return (is_safe(t) || renew(t)) && set_request(t, request);
}

/* Only on_start ends a request with this result. */
bool transfer_is_refused(const struct transfer *t)
{
	return t->result == CURLE_ABORTED_BY_CALLBACK;
}

bool transfer_prepare_again(struct transfer *t)
{
	CURL *copy = curl_easy_duphandle(t->easy); /* of its options, not of answers */

	if (copy == NULL) {
		return false;
	}
	curl_easy_cleanup(t->easy);
	t->easy = copy;
	t->used = false;
	return true;
}

void transfer_forget(struct transfer *t)
{
	if (t->body.cap > 2 * STORED_MAX) {
		buf_free(&t->body);
	}
}
