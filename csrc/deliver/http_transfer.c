#include "deliver/answer.h"
#include "deliver/http_inner.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <sys/socket.h>

#define STORED_MAX ((size_t)256 * 1024)
#define RECEIVED_MAX ((size_t)4 * 1024 * 1024)
#define CONNECT_MAX (5 * EVREC_SECOND)

static long milliseconds(int64_t ns)
{
	return (long)((ns + 999999) / 1000000);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t len = size * n, room = STORED_MAX - t->body.len;

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
	(void)local_port;
	t->starts++;
	return CURL_PREREQFUNC_OK;
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)ctx;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int set_blob(CURL *easy, CURLoption option, char *pem)
{
	struct curl_blob blob = { pem, strlen(pem), CURL_BLOB_NOCOPY };

	return (int)curl_easy_setopt(easy, option, &blob);
}

static bool set_tls(CURL *easy, const struct http *http)
{
	int failed = 0;

	if (http->ca != NULL) {
		failed |= set_blob(easy, CURLOPT_CAINFO_BLOB, http->ca);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* else the system's count as well */
	}
	if (http->certificate != NULL) {
		failed |= set_blob(easy, CURLOPT_SSLCERT_BLOB, http->certificate);
		failed |= set_blob(easy, CURLOPT_SSLKEY_BLOB, http->key);
	}
	/* Each handle would keep sessions of its own: much memory, and checks left out, for few connections. */
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, http->insecure ? 0L : 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, http->insecure ? 0L : 2L);
	return failed == 0;
}

/* What is the same for every request. */
static bool set_up(struct transfer *t)
{
	const struct http *http = t->http;
	int64_t connect = http->timeout < CONNECT_MAX ? http->timeout : CONNECT_MAX;
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
	failed |= (int)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(http->timeout));
	failed |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(connect));
	failed |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L); /* the least; each handle has one */
	failed |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_start);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	failed |= (int)curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	return failed == 0 && set_tls(easy, http);
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
	t->token_version = 0;
	return true;
}

/*
 * Before 8.1.1 (curl issue 11101) a handle's second answer, if its first header begins with a space, is appended to a
 * header of the first answer, whose memory is free by then.
 */
static bool is_used_up(const struct transfer *t)
{
	return t->used && curl_version_info(CURLVERSION_NOW)->version_num < 0x080101;
}

struct transfer *transfer_new(struct http *http)
{
	struct transfer *t = mem_zalloc(sizeof(*t));

	if (t == NULL) {
		return NULL;
	}
	t->http = http;
	if (!renew(t)) {
		transfer_free(t);
		return NULL;
	}
	return t;
}

void transfer_free(struct transfer *t)
{
	curl_easy_cleanup(t->easy);
	request_free(&t->request);
	buf_free(&t->body);
	mem_free(t);
}

static void set_message(evrec_answer *answer, const char *text)
{
	size_t len = utf8_floor(str_from(text), sizeof(answer->message) - 1);

	memcpy(answer->message, text, len);
	answer->message[len] = '\0';
}

/*
 * Kubernetes' own rule for a segment of a path. A server that decodes a URL before it takes it apart, as the API server
 * does, would take any other for a longer path, however it was escaped.
 */
static bool segment_valid(const char *segment)
{
	return *segment != '\0' && strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0 &&
	       strpbrk(segment, "/%") == NULL;
}

static void put_segment(struct buf *url, CURL *easy, const char *segment)
{
	char *escaped = curl_easy_escape(easy, segment, 0);

	if (escaped == NULL) {
		url->failed = true;
		return;
	}
	buf_put_str(url, str_from(escaped));
	curl_free(escaped);
}

static bool set_request(struct transfer *t, enum verb verb)
{
	const struct http *http = t->http;
	struct buf url = { 0 };
	int failed = 0;

	buf_printf(&url, "%s/api/v1/namespaces/", http->server);
	put_segment(&url, t->easy, t->request.ns);
	buf_put_str(&url, EVREC_STR("/events"));
	if (verb == VERB_PATCH) {
		buf_put_str(&url, EVREC_STR("/"));
		put_segment(&url, t->easy, t->request.name);
	}
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_URL, buf_cstr(&url));
	failed |= url.failed;
	buf_free(&url);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->request.body);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request.body_len);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, verb == VERB_PATCH ? "PATCH" : NULL);
	failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER,
	                                verb == VERB_PATCH ? http->patch_headers : http->create_headers);
	if (t->token_version != http->credentials.version) {
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		failed |= (int)curl_easy_setopt(t->easy, CURLOPT_XOAUTH2_BEARER, http->credentials.token);
		t->token_version = failed == 0 ? http->credentials.version : 0;
	}
	return failed == 0;
}

bool transfer_prepare(struct transfer *t, struct entry *entry, evrec_answer *answer)
{
	enum body body = entry->verb == VERB_PATCH ? BODY_PATCH : BODY_CREATE;

	t->entry = entry;
	t->starts = 0;
	t->received = 0;
	t->error[0] = '\0';
	buf_clear(&t->body);
	request_free(&t->request);
	if (!t->http->encode(entry->item, body, &t->request)) {
		answer->unsent = true;
		set_message(answer, "no memory for the request");
		return false;
	}
	if (!segment_valid(t->request.ns) || (entry->verb == VERB_PATCH && !segment_valid(t->request.name))) {
		answer->status = 400;
		set_message(answer, "not sent: a namespace or name that is empty, '.', '..' or has '/' or '%' in it");
		return false;
	}
	if ((is_used_up(t) && !renew(t)) || !set_request(t, entry->verb)) {
		answer->unsent = true;
		set_message(answer, "no memory for the request");
		return false;
	}
	return true;
}

static void read_failure(const struct transfer *t, CURLcode result, evrec_answer *answer)
{
	answer->unsent = t->starts == 0;
	answer->lingers = !answer->unsent;
	if (t->received > RECEIVED_MAX) {
		set_message(answer, "the answer is longer than 4 MiB");
	} else if (result == CURLE_OPERATION_TIMEDOUT) {
		(void)snprintf(answer->message, sizeof(answer->message), "no %s within %.3g s",
		               answer->unsent ? "connection" : "answer",
		               (double)t->http->timeout / (double)EVREC_SECOND);
	} else {
		set_message(answer, t->error[0] != '\0' ? t->error : curl_easy_strerror(result));
	}
}

static void read_answer(const struct transfer *t, long status, evrec_answer *answer)
{
	struct curl_header *header;

	answer->status = (int)status;
	/* Sent twice by libcurl, or given up by the server or a gateway before it, which does not stop the work on it. */
	answer->lingers = t->starts > 1 || status == 502 || status == 504;
	if (curl_easy_header(t->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
		answer->retry_after = answer_retry_after(str_from(header->value), evrec_clock_now(evrec_clock_real()));
	}
	/* A stored event too long to be read whole: it is there, and that is all there is to know. */
	if (status >= 200 && status <= 299 && t->received > t->body.len && t->body.data[0] == '{') {
		return;
	}
	answer_read_body(answer, buf_str(&t->body));
}

/*
 * Sent again by libcurl, after a kept connection broke: the first time may have met with success, which these answers
 * to the second say nothing of.
 */
static bool leaves_doubt(const struct transfer *t, long status)
{
	return t->starts > 1 && (status == 401 || status == 409 || status == 429);
}

void transfer_finish(struct transfer *t, CURLcode result, evrec_answer *answer)
{
	long status = 0;

	t->used = true;
	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK) {
		read_failure(t, result, answer);
	} else {
		read_answer(t, status, answer);
		if (leaves_doubt(t, status)) {
			answer->status = 0;
			set_message(answer, "the connection was lost while the request was under way");
		}
	}
	request_free(&t->request);
	t->entry = NULL;
}
