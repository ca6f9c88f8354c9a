#include "http/http_client.h"

#include "base/clock.h"
#include "base/fork_lock.h"
#include "base/line.h"
#include "http/headers.h"
#include "http/http_client_inner.h"

#define SEND_BUFFER_MIN 16384 /* libcurl takes no less */
#define CONNECT_MAX (5 * EVREC_SECOND)
#define TIMES_AVERAGED 8 /* the weight of the last time in the average is 1 / this */

/* ---- requests ---- */

static void activate(struct http_client *client, struct transfer *t)
{
	t->prev = NULL;
	t->next = client->active;
	if (client->active != NULL) {
		client->active->prev = t;
	}
	client->active = t;
	client->in_flight++;
}

static void deactivate(struct http_client *client, struct transfer *t)
{
	if (t->prev == NULL) {
		client->active = t->next;
	} else {
		t->prev->next = t->next;
	}
	if (t->next != NULL) {
		t->next->prev = t->prev;
	}
	client->in_flight--;
}

static void make_idle(struct http_client *client, struct transfer *t)
{
	t->next = client->idle;
	client->idle = t;
}

static struct transfer *take_idle(struct http_client *client)
{
	struct transfer *t = client->idle;

	if (t == NULL) {
		return transfer_new(client);
	}
	client->idle = t->next;
	return t;
}

/* TLS sends the client certificate once for a connection, so a new certificate needs new connections. */
static void refresh_certificate(struct http_client *client, int64_t now)
{
	evrec_error err;
	bool changed;

	if (credentials_refresh_pair(&client->credentials, now, &changed, &err) != 0) {
		client->events.warn(client->owner, err.message);
	}
	client->stale = client->stale || changed;
}

/* False, and why: there is no token. */
static bool ready_credentials(struct http_client *client, struct http_response *response)
{
	const int64_t now = clock_monotonic(evrec_clock_real());
	evrec_error err;

	refresh_certificate(client, now);
	if (credentials_refresh(&client->credentials, now, &err) == 0) {
		return true;
	}
	if (client->credentials.token != NULL) {
		client->events.warn(client->owner, err.message);
		return true;
	}
	memcpy(response->message, err.message, sizeof(response->message));
	return false;
}

/* Sets the message why there is no handle for a request, unless it is certainly for want of memory. */
static void explain_no_handle(const struct http_client *client, struct http_response *response)
{
	static const char no_multi[] = HTTP_NO_MEMORY ", or no file descriptors";
	const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;

	if (client->multi == NULL) {
		memcpy(response->message, no_multi, sizeof(no_multi));
	} else if (client->ca_unsupported) {
		(void)snprintf(response->message, sizeof(response->message),
		               "libcurl with %s takes no CA certificate from memory; libcurl with OpenSSL does",
		               tls != NULL ? tls : "no TLS library");
	}
}

/* NULL, and why: there is no token, no memory, or libcurl takes no CA certificate. */
static struct transfer *begin(struct http_client *client, const struct http_request *request,
                              struct http_response *response)
{
	struct transfer *t;

	if (!ready_credentials(client, response)) {
		mem_free(request->body);
		return NULL;
	}
	memcpy(response->message, HTTP_NO_MEMORY, sizeof(HTTP_NO_MEMORY));
	if (client->stale && client->in_flight == 0) {
		multi_close(client);
		client->stale = false;
	}
	t = multi_open(client) ? take_idle(client) : NULL;
	if (t == NULL) {
		explain_no_handle(client, response);
		mem_free(request->body);
		return NULL;
	}
	if (!transfer_prepare(t, request) || curl_multi_add_handle(client->multi, t->easy) != CURLM_OK) {
		t->result = CURLE_OUT_OF_MEMORY;
		transfer_finish(t, response);
		make_idle(client, t);
		return NULL;
	}
	return t;
}

bool http_client_send(struct http_client *client, const struct http_request *request, struct http_response *response)
{
	struct transfer *t;

	*response = (struct http_response){ .unsent = true };
	fork_lock_enter();
	t = begin(client, request, response);
	fork_lock_leave();
	if (t != NULL) {
		activate(client, t);
	}
	return t != NULL;
}

static void take_out(struct http_client *client, struct transfer *t, CURLcode result)
{
	(void)curl_multi_remove_handle(client->multi, t->easy);
	deactivate(client, t);
	t->result = result;
}

/* libcurl's own times include the wait for a connection, or, over HTTP/2, end when the request begins. */
static void note_time(struct http_client *client, const struct transfer *t)
{
	if (t->result == CURLE_OK && t->starts != 0) {
		const int64_t took = clock_monotonic(evrec_clock_real()) - t->started;

		client->answer_time += (took - client->answer_time) / TIMES_AVERAGED;
	}
}

/* Unlike openssl_chose_http2, libcurl knows it with any TLS library, but only once there is an answer. */
static void note_version(struct http_client *client, const struct transfer *t)
{
	long version = CURL_HTTP_VERSION_NONE;

	if (transfer_status(t) != 0 && curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK) {
		client->answered_http1 = version < CURL_HTTP_VERSION_2_0;
	}
}

static void end(struct http_client *client, struct transfer *t)
{
	struct http_response response = { 0 };

	note_time(client, t);
	note_version(client, t);
	transfer_finish(t, &response);
	client->stale = client->stale || (response.timed_out && !response.unsent);
	client->events.done(client->owner, t->ctx, &response);
	transfer_forget(t);
	make_idle(client, t);
}

/* A request that was refused begins again. False: no memory. */
static bool begin_again(struct http_client *client, struct transfer *t)
{
	if (!transfer_prepare_again(t) || curl_multi_add_handle(client->multi, t->easy) != CURLM_OK) {
		t->result = CURLE_OUT_OF_MEMORY;
		return false;
	}
	activate(client, t);
	return true;
}

struct collected {
	struct transfer *lost; /* requests whose connection broke, still to be ended */
	bool any, no_memory;
};

static void collect(struct http_client *client, struct collected *c)
{
	struct transfer *t;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		take_out(client, t, message->data.result);
		if (transfer_is_refused(t) && begin_again(client, t)) {
			continue;
		}
		c->any = true;
		c->no_memory = c->no_memory || t->result == CURLE_OUT_OF_MEMORY;
		if (transfer_is_lost(t)) {
			t->next = c->lost;
			c->lost = t;
		} else {
			end(client, t);
		}
	}
}

/* Ends the requests that are done; true if there was one. */
static bool finish(struct http_client *client)
{
	struct collected c = { 0 };
	struct transfer *t;
	int running;

	collect(client, &c);
	if (c.lost != NULL && client->in_flight != 0) {
		/*
		 * The reason why a connection was closed may be in another request's answer, which libcurl has not read
		 * yet.
		 */
		(void)curl_multi_perform(client->multi, &running);
		collect(client, &c);
	}
	while ((t = c.lost) != NULL) {
		c.lost = t->next;
		end(client, t);
	}
	/*
	 * If there was no memory for the first request of a connection, libcurl may keep it, and let all other requests
	 * wait for ever for its protocol version.
	 */
	if (c.no_memory) {
		while ((t = client->active) != NULL) {
			take_out(client, t, CURLE_OUT_OF_MEMORY);
			end(client, t);
		}
		multi_close(client);
	}
	return c.any;
}

static bool step(struct http_client *client)
{
	int running;

	if (!multi_open(client)) {
		return false;
	}
	guard_rewind(&client->guard);
	sockets_hold_back(&client->sockets, true);
	(void)curl_multi_perform(client->multi, &running);
	sockets_hold_back(&client->sockets, false);
	return finish(client);
}

bool http_client_step(struct http_client *client)
{
	bool any;

	fork_lock_enter();
	any = step(client);
	fork_lock_leave();
	return any;
}

unsigned http_client_connections(const struct http_client *client)
{
	return client->sockets.opened;
}

void http_client_hide_secrets(const struct http_client *client, char *text)
{
	secret_hide(text, str_from(client->credentials.token));
	headers_hide(&client->headers, text);
}

void http_client_reload_credentials(struct http_client *client)
{
	credentials_reload(&client->credentials);
}

void http_client_keep_token_folder(struct http_client *client, int folder)
{
	credentials_keep_folder(&client->credentials, folder);
}

int http_client_set_credentials(struct http_client *client, evrec_str token, evrec_str certificate, evrec_str key,
                                evrec_error *err)
{
	const struct credentials_options new = { .token = token, .certificate = certificate, .key = key };
	int code = credentials_replace(&client->credentials, &new, err);

	client->stale = client->stale || (code == 0 && certificate.len != 0);
	return code;
}

/* ---- life ---- */

void http_client_free(struct http_client *client)
{
	struct transfer *t;

	if (client == NULL) {
		return;
	}
	fork_lock_enter();
	while ((t = client->active) != NULL) {
		(void)curl_multi_remove_handle(client->multi, t->easy);
		deactivate(client, t);
		transfer_free(t);
	}
	while ((t = client->idle) != NULL) {
		client->idle = t->next;
		transfer_free(t);
	}
	(void)curl_multi_cleanup(client->multi);
	curl_slist_free_all(client->addresses);
	buf_free(&client->refusal);
	credentials_free(&client->credentials);
	(void)pthread_mutex_destroy(&client->lock);
	mem_free(client->server);
	mem_free(client->accept);
	mem_free(client->encoding);
	mem_free(client->headers_block);
	mem_free(client->ca);
	mem_free(client);
	fork_lock_leave();
}

static bool copy_options(struct http_client *client, const struct http_options *options)
{
	const struct credentials_options credentials = { options->token,
		                                         options->token_file,
		                                         options->client_certificate,
		                                         options->client_key,
		                                         options->client_certificate_file,
		                                         options->client_key_file };
	struct buf accept = { 0 }, encoding = { 0 };
	evrec_str server = options->server;
	bool copied;

	client->insecure = options->insecure_skip_tls_verify;
	client->timeout = options->timeout;
	client->connect_timeout = options->timeout < CONNECT_MAX ? options->timeout : CONNECT_MAX;
	client->max_in_flight = options->max_in_flight;
	client->send_buffer = options->send_buffer != 0 ? options->send_buffer : SEND_BUFFER_MIN;
	while (server.data[server.len - 1] == '/') {
		server.len--;
	}
	if (options->accept != NULL) {
		buf_printf(&accept, "Accept: %s", options->accept);
	}
	if (options->encoding != NULL) {
		buf_printf(&encoding, "Content-Encoding: %s", options->encoding);
	}
	client->headers_block = map_dup(&options->headers, &client->headers);
	/* The credentials come first: credentials_free would close descriptor 0 as the folder of a zeroed struct. */
	copied = credentials_init(&client->credentials, &credentials) && !accept.failed && !encoding.failed &&
	         client->headers_block != NULL && str_copy(&client->server, server) &&
	         str_copy(&client->accept, buf_str(&accept)) && str_copy(&client->encoding, buf_str(&encoding)) &&
	         str_copy(&client->ca, options->ca);
	buf_free(&accept);
	buf_free(&encoding);
	return copied;
}

struct http_client *http_client_new(const struct http_options *options, const struct http_events *events, void *owner,
                                    evrec_error *err)
{
	struct http_client *client;

	if (http_check_options(options, err) != 0) {
		return NULL;
	}
	client = mem_zalloc(sizeof(*client));
	if (client == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	(void)pthread_mutex_init(&client->lock, NULL);
	client->events = *events;
	client->owner = owner;
	if (!copy_options(client, options)) {
		error_set(err, EVREC_ENOMEM, "no memory");
		http_client_free(client);
		return NULL;
	}
	return client;
}
