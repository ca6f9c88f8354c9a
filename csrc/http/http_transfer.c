#include "base/clock.h"
#include "base/utf8.h"
#include "http/http_client_inner.h"
#include "http/retry_after.h"

#include <stdio.h>

#define STORED_MAX ((size_t)256 * 1024)
#define RECEIVED_MAX ((size_t)4 * 1024 * 1024)
#define REFUSAL_MAX ((size_t)4096)
#define CONNECT_MAX (5 * EVREC_SECOND)

static long milliseconds(int64_t ns)
{
	return (long)((ns + 999999) / 1000000);
}

static long status_of(const struct transfer *t)
{
	long status = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t len = size * n, room = t->max_body - t->body.len;

	guard_rewind(&t->client->guard);
	if (t->streamed && status_of(t) / 100 == 2) {
		return t->client->events.chunk(t->client->owner, t->ctx, (evrec_str){ data, len }) ? len : 0;
	}
	t->received += len;
	if (t->received > RECEIVED_MAX) {
		return 0;
	}
	buf_put(&t->body, data, len < room ? len : room);
	return t->body.failed ? 0 : len;
}

/* The connection stands, and the request is about to go out. */
static int on_start(void *ctx, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
	struct transfer *t = ctx;

	(void)remote_ip;
	(void)local_ip;
	(void)remote_port;
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

static bool set_tls(CURL *easy, const struct http_client *client)
{
	int failed = 0;

	if (client->ca != NULL) {
		failed |= set_blob(easy, CURLOPT_CAINFO_BLOB, client->ca, CURL_BLOB_NOCOPY);
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
	const struct http_client *client = t->client;
	int64_t connect = client->timeout < CONNECT_MAX ? client->timeout : CONNECT_MAX;
	CURL *easy = t->easy;
	int failed = 0;

	failed |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
	                                1L); /* a hanging name server must not hold up closing */
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_USERAGENT, "evrec/" EVREC_VERSION);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(connect));
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

/* An easy handle in the place of the one that there is, which stays where there is no memory. */
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
	return true;
}

/*
 * Before 8.1.1 (curl issue 11101) a handle's second answer, if its first header begins with a space, is appended to a
 * header of the first answer, whose memory is free by then.
 */
static bool is_used_up(const struct transfer *t)
{
	return t->used && loaded_curl_version() < 0x080101;
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

/* Those of the options. libcurl sends an empty header if a semicolon takes the place of the colon. */
static bool put_own_headers(struct transfer *t)
{
	const evrec_map *headers = &t->client->headers;
	bool put = true;

	for (size_t i = 0; put && i < headers->len; i++) {
		const evrec_pair *header = &headers->pairs[i];
		struct buf text = { 0 };

		buf_put_str(&text, header->key);
		buf_put_str(&text, header->value.len == 0 ? EVREC_STR(";") : EVREC_STR(": "));
		buf_put_str(&text, header->value);
		(void)buf_cstr(&text);
		put = !text.failed && put_header(&t->headers, text.data);
		buf_free(&text);
	}
	return put;
}

/* Without an Expect of libcurl's own, which costs a round trip. */
static bool set_headers(struct transfer *t, const char *content_type)
{
	const char *accept = t->client->accept, *encoding = t->client->encoding;
	struct buf type = { 0 };
	bool made;

	if (t->content_type == content_type) {
		return true;
	}
	(void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	t->content_type = NULL;
	buf_printf(&type, "Content-Type: %s", content_type);
	made = !type.failed && put_header(&t->headers, buf_cstr(&type)) && put_header(&t->headers, "Expect:") &&
	       (accept == NULL || put_header(&t->headers, accept)) &&
	       (encoding == NULL || put_header(&t->headers, encoding)) && put_own_headers(t);
	buf_free(&type);
	if (made) {
		t->content_type = content_type;
	}
	return made;
}

/* Copies the certificate, as it may be replaced while a request is under way. */
static int set_credentials(struct transfer *t, const struct credentials *c)
{
	int failed = 0;

	if (t->version == c->version) {
		return 0;
	}
	t->version = 0;
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_XOAUTH2_BEARER, c->token);
	if (c->certificate != NULL) {
		failed |= set_blob(t->easy, CURLOPT_SSLCERT_BLOB, c->certificate, CURL_BLOB_COPY);
		failed |= set_blob(t->easy, CURLOPT_SSLKEY_BLOB, c->key, CURL_BLOB_COPY);
		/* Without one, libcurl ends the process if OpenSSL asks for it; http_check_options may miss a case. */
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
	/* Each time: a handle gives them to the multi handle once, and there may be a new one of that. */
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_RESOLVE, client->addresses);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, request->method);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, milliseconds(t->timeout));
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	failed |= set_credentials(t, &client->credentials);
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
	return (!is_used_up(t) || renew(t)) && set_request(t, request);
}

static void set_message(struct http_response *response, const char *text)
{
	utf8_copy(response->message, sizeof(response->message), str_from(text));
}

/* The head of a 401 says all; Go's server resets the stream after it if it has not read the request's body. */
bool transfer_is_lost(const struct transfer *t)
{
	switch (t->result) {
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return t->starts != 0 && status_of(t) != 401;
	default:
		return false;
	}
}

/* Of the request's body. Of one that libcurl sent twice there may be more. */
static size_t bytes_sent(const struct transfer *t)
{
	curl_off_t sent = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	return (size_t)sent;
}

/* The body, and what its header says of it. */
static void read_body(const struct transfer *t, struct http_response *response)
{
	struct curl_header *header;

	response->body = buf_str(&t->body);
	response->body_cut = t->received > t->body.len;
	if (curl_easy_header(t->easy, "Content-Type", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
		response->content_type = str_from(header->value);
	}
}

static void read_failure(const struct transfer *t, struct http_response *response)
{
	const struct http_client *client = t->client;

	response->cut_status = t->starts == 0 ? 0 : (int)status_of(t);
	if (response->cut_status != 0) {
		response->cut_early = bytes_sent(t) < t->sent_len;
		read_body(t, response);
	}
	response->unsent = t->starts == 0;
	response->timed_out = t->result == CURLE_OPERATION_TIMEDOUT;
	if (t->received > RECEIVED_MAX) {
		set_message(response, "the answer is longer than 4 MiB");
	} else if (t->breaks != client->guard.breaks) {
		set_message(response, "the server sends frames without end that have nothing in them");
	} else if (response->timed_out) {
		(void)snprintf(response->message, sizeof(response->message), "no %s within %.3g s",
		               response->unsent ? "connection" : "answer", (double)t->timeout / (double)EVREC_SECOND);
	} else if (t->result == CURLE_OUT_OF_MEMORY && response->unsent) {
		set_message(response, HTTP_NO_MEMORY);
	} else {
		set_message(response, t->error[0] != '\0' ? t->error : curl_easy_strerror(t->result));
		response->unauthorized = transfer_is_lost(t) && t->port == client->refused_port;
		if (response->unauthorized) {
			response->body = buf_str(&client->refusal);
		}
	}
}

/* Kubernetes 1.36 closes a connection after a 401, and all requests under way on it end with that. */
static void note_refusal(struct transfer *t, int status)
{
	struct http_client *client = t->client;

	if (status == 401) {
		client->refused_port = t->port;
		buf_clear(&client->refusal);
		buf_put(&client->refusal, t->body.data, t->body.len < REFUSAL_MAX ? t->body.len : REFUSAL_MAX);
	} else if (t->port == client->refused_port) {
		client->refused_port = 0;
	}
}

static void read_answer(struct transfer *t, struct http_response *response)
{
	struct curl_header *header;

	response->status = (int)status_of(t);
	if (t->result != CURLE_OK) {
		buf_clear(&t->body);
	}
	read_body(t, response);
	if (curl_easy_header(t->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
		response->retry_after = retry_after_parse(str_from(header->value), evrec_clock_now(evrec_clock_real()));
	}
	note_refusal(t, response->status);
}

void transfer_finish(struct transfer *t, struct http_response *response)
{
	t->used = true;
	response->old_credentials = t->version != t->client->credentials.version;
	response->sent_again = t->starts > 1;
	if (t->result == CURLE_OK || (t->starts != 0 && status_of(t) == 401)) {
		read_answer(t, response);
	} else {
		read_failure(t, response);
	}
	mem_free(t->sent);
	t->sent = NULL;
}

void transfer_forget(struct transfer *t)
{
	if (t->body.cap > 2 * STORED_MAX) {
		buf_free(&t->body);
	}
}
