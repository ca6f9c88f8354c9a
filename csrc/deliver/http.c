#include "base/clock.h"
#include "deliver/http_inner.h"
#include "deliver/sender.h"

#include <time.h>

#define CONNECTIONS_MAX 4L       /* of HTTP/1.1; HTTP/2 needs one */
#define REST (EVREC_SECOND / 10) /* between tries to get the memory for a multi handle */
/*
 * Answers come one by one, but to read one libcurl looks at all requests under way: with so many, it pays to let some
 * gather.
 */
#define GATHER_FROM 8
#define GATHER (EVREC_SECOND / 1000)

void transport_global_init(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void request_free(struct request *request)
{
	mem_free(request->ns);
	mem_free(request->name);
	mem_free(request->body);
	*request = (struct request){ 0 };
}

static struct http *http_of(struct transport *t)
{
	return (struct http *)t;
}

/* ---- the multi handle ---- */

static bool open_multi(struct http *http)
{
	CURLM *multi;

	if (http->multi != NULL) {
		return true;
	}
	multi = curl_multi_init();
	if (multi == NULL) {
		return false;
	}
	(void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	(void)curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, CONNECTIONS_MAX);
	(void)curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)http->max_in_flight);
	(void)pthread_mutex_lock(&http->lock);
	http->multi = multi;
	(void)pthread_mutex_unlock(&http->lock);
	return true;
}

static void close_multi(struct http *http)
{
	CURLM *multi;

	(void)pthread_mutex_lock(&http->lock);
	multi = http->multi;
	http->multi = NULL;
	http->woken = true; /* a wake may go with it */
	(void)pthread_mutex_unlock(&http->lock);
	(void)curl_multi_cleanup(multi);
}

static bool take_woken(struct http *http)
{
	bool woken;

	(void)pthread_mutex_lock(&http->lock);
	woken = http->woken;
	http->woken = false;
	(void)pthread_mutex_unlock(&http->lock);
	return woken;
}

static void http_wake(struct transport *t)
{
	struct http *http = http_of(t);

	(void)pthread_mutex_lock(&http->lock);
	if (http->multi == NULL) {
		http->woken = true;
	} else {
		(void)curl_multi_wakeup(http->multi);
	}
	(void)pthread_mutex_unlock(&http->lock);
}

/* ---- transfers ---- */

static void activate(struct http *http, struct transfer *t)
{
	t->prev = NULL;
	t->next = http->active;
	if (http->active != NULL) {
		http->active->prev = t;
	}
	http->active = t;
	http->in_flight++;
}

static void deactivate(struct http *http, struct transfer *t)
{
	if (t->prev == NULL) {
		http->active = t->next;
	} else {
		t->prev->next = t->next;
	}
	if (t->next != NULL) {
		t->next->prev = t->prev;
	}
	http->in_flight--;
}

static void make_idle(struct http *http, struct transfer *t)
{
	t->next = http->idle;
	http->idle = t;
}

static struct transfer *take_idle(struct http *http)
{
	struct transfer *t = http->idle;

	if (t == NULL) {
		return transfer_new(http);
	}
	http->idle = t->next;
	return t;
}

/* Not sent, for want of a token: says so. One that is merely not renewed stays in use. */
static bool ready_credentials(struct http *http, struct sender *s, evrec_answer *answer)
{
	evrec_error err;

	if (credentials_refresh(&http->credentials, clock_monotonic(evrec_clock_real()), &err) == 0) {
		return true;
	}
	if (http->credentials.token != NULL) {
		outbox_report(sender_outbox(s), "unauthorized", err.message);
		return true;
	}
	answer->unsent = true;
	memcpy(answer->message, err.message, sizeof(answer->message));
	return false;
}

static bool begin(struct http *http, struct sender *s, struct entry *entry, evrec_answer *answer)
{
	struct transfer *t;

	if (!ready_credentials(http, s, answer)) {
		return false;
	}
	if (http->stale && http->in_flight == 0) {
		close_multi(http);
		http->stale = false;
	}
	t = open_multi(http) ? take_idle(http) : NULL;
	if (t == NULL) {
		answer->unsent = true;
		memcpy(answer->message, "no memory for the request", sizeof("no memory for the request"));
		return false;
	}
	if (!transfer_prepare(t, entry, answer)) {
		make_idle(http, t);
		return false;
	}
	if (curl_multi_add_handle(http->multi, t->easy) != CURLM_OK) {
		transfer_finish(t, CURLE_OUT_OF_MEMORY, answer);
		make_idle(http, t);
		return false;
	}
	activate(http, t);
	return true;
}

static void http_send(struct transport *transport, struct sender *s, struct entry *entry)
{
	evrec_answer answer = { 0 };

	if (!begin(http_of(transport), s, entry, &answer)) {
		sender_answered(s, entry, &answer);
	}
}

static void end(struct http *http, struct sender *s, struct transfer *t, CURLcode result)
{
	struct entry *entry = t->entry;
	evrec_answer answer = { 0 };

	(void)curl_multi_remove_handle(http->multi, t->easy);
	deactivate(http, t);
	http->stale = http->stale || (result == CURLE_OPERATION_TIMEDOUT && t->starts != 0);
	transfer_finish(t, result, &answer);
	make_idle(http, t);
	sender_answered(s, entry, &answer);
}

/* Brings back what has ended; true if anything has. */
static bool finish(struct http *http, struct sender *s)
{
	struct transfer *t;
	CURLMsg *message;
	CURLcode result;
	bool any = false, no_memory = false;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
		result = message->data.result;
		no_memory = no_memory || result == CURLE_OUT_OF_MEMORY;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		end(http, s, t, result);
		any = true;
	}
	/*
	 * libcurl may keep a connection whose first request it had no memory for, and make all others wait, without
	 * end, to learn what it speaks.
	 */
	if (no_memory) {
		while (http->active != NULL) {
			end(http, s, http->active, CURLE_OUT_OF_MEMORY);
		}
		close_multi(http);
	}
	return any;
}

static void http_step(struct transport *transport, struct sender *s, int64_t timeout)
{
	struct http *http = http_of(transport);
	struct timespec rest = { 0, (long)(timeout < REST ? timeout : REST) };
	const struct timespec gather = { 0, GATHER };
	int running;

	if (!open_multi(http)) {
		if (timeout > 0) {
			(void)nanosleep(&rest, NULL);
		}
		return;
	}
	(void)curl_multi_perform(http->multi, &running);
	if (finish(http, s) || timeout <= 0 || take_woken(http)) {
		return;
	}
	(void)curl_multi_poll(http->multi, NULL, 0, (int)((timeout + 999999) / 1000000), NULL);
	if (http->in_flight >= GATHER_FROM) {
		(void)nanosleep(&gather, NULL);
	}
	(void)curl_multi_perform(http->multi, &running);
	(void)finish(http, s);
}

static void http_reload_credentials(struct transport *t)
{
	http_of(t)->credentials.reload = true;
}

/* ---- life ---- */

static void http_free(struct transport *transport)
{
	struct http *http = http_of(transport);
	struct transfer *t;

	while ((t = http->active) != NULL) {
		(void)curl_multi_remove_handle(http->multi, t->easy);
		deactivate(http, t);
		transfer_free(t);
	}
	while ((t = http->idle) != NULL) {
		http->idle = t->next;
		transfer_free(t);
	}
	(void)curl_multi_cleanup(http->multi);
	curl_slist_free_all(http->create_headers);
	curl_slist_free_all(http->patch_headers);
	credentials_free(&http->credentials);
	(void)pthread_mutex_destroy(&http->lock);
	mem_free(http->server);
	mem_free(http->ca);
	mem_free(http->certificate);
	mem_free(http->key);
	mem_free(http);
}

static const struct transport_ops http_ops = {
	.threaded = true,
	.send = http_send,
	.step = http_step,
	.wake = http_wake,
	.reload_credentials = http_reload_credentials,
	.free = http_free,
};

static bool put_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*list, header);

	if (longer != NULL) {
		*list = longer;
	}
	return longer != NULL;
}

/* Without an Expect of libcurl's own, which costs a round trip. */
static bool make_headers(struct curl_slist **list, const char *content_type)
{
	return put_header(list, content_type) && put_header(list, "Accept: application/json") &&
	       put_header(list, "Expect:");
}

static bool copy(char **to, evrec_str s)
{
	*to = s.len == 0 ? NULL : str_dup(s);
	return s.len == 0 || *to != NULL;
}

struct transport *http_transport_new(const evrec_kubernetes_options *options, encode_func *encode, evrec_error *err)
{
	evrec_str server = options->server;
	struct http *http;

	if (http_check_options(options, err) != 0) {
		return NULL;
	}
	http = mem_zalloc(sizeof(*http));
	if (http == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	http->base.ops = &http_ops;
	(void)pthread_mutex_init(&http->lock, NULL);
	http->encode = encode;
	http->insecure = options->insecure_skip_tls_verify;
	http->timeout = options->timeout;
	http->max_in_flight = options->max_in_flight;
	while (server.data[server.len - 1] == '/') {
		server.len--;
	}
	if (!credentials_init(&http->credentials, options->token, options->token_file) ||
	    !copy(&http->server, server) || !copy(&http->ca, options->ca) ||
	    !copy(&http->certificate, options->client_certificate) || !copy(&http->key, options->client_key) ||
	    !make_headers(&http->create_headers, "Content-Type: application/json") ||
	    !make_headers(&http->patch_headers, "Content-Type: application/strategic-merge-patch+json")) {
		error_set(err, EVREC_ENOMEM, "no memory");
		http_free(&http->base);
		return NULL;
	}
	return &http->base;
}
