#define _GNU_SOURCE /* strerror_r */

#include "base/clock.h"
#include "base/utf8.h"
#include "http/http_client_inner.h"
#include "http/retry_after.h"

#include <stdio.h>

#define REFUSAL_MAX ((size_t)4096)

static void set_message(struct http_response *response, const char *text)
{
	utf8_copy(response->message, sizeof(response->message), str_from(text));
}

/* The header of a 401 suffices; Go's server resets the stream after it if it has not read the request's body. */
bool transfer_is_lost(const struct transfer *t)
{
	switch (t->result) {
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return t->starts != 0 && transfer_status(t) != 401;
	default:
		return false;
	}
}

/* The bytes sent of the request's body; more than its length if libcurl sent it twice. */
static size_t bytes_sent(const struct transfer *t)
{
	curl_off_t sent = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	return (size_t)sent;
}

/* Sets the body, and the values of the answer's header. */
static void read_body(const struct transfer *t, struct http_response *response)
{
	struct curl_header *header;

	response->body = buf_str(&t->body);
	response->body_cut = t->received > t->body.len;
	if (curl_easy_header(t->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
		response->retry_after = retry_after_parse(str_from(header->value), evrec_clock_now(evrec_clock_real()));
	}
	if (curl_easy_header(t->easy, "Content-Type", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
		response->content_type = str_from(header->value);
	}
}

/* The timeout that has passed: that of the connection, or that of the request. */
static int64_t passed_timeout(const struct transfer *t)
{
	const int64_t connect = t->client->connect_timeout, middle = (connect + t->timeout) / 2;
	curl_off_t took = 0; /* us; longer than `connect` if the request has waited for another one's connection */

	(void)curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &took);
	return t->starts == 0 && connect < t->timeout && took < middle / 1000 ? connect : t->timeout;
}

static void read_failure(const struct transfer *t, struct http_response *response)
{
	const struct http_client *client = t->client;
	char reason[64];

	response->cut_status = t->starts == 0 ? 0 : (int)transfer_status(t);
	if (response->cut_status != 0) {
		response->cut_early = bytes_sent(t) < t->sent_len;
		read_body(t, response);
	}
	response->unsent = t->starts == 0;
	response->timed_out = t->result == CURLE_OPERATION_TIMEDOUT;
	response->bad_certificate = t->result == CURLE_SSL_CERTPROBLEM;
	response->too_long = t->received > RECEIVED_MAX;
	if (response->too_long) {
		set_message(response, "the answer is longer than 4 MiB");
	} else if (t->breaks != client->guard.breaks) {
		set_message(response, "the server sends an endless stream of empty frames");
	} else if (response->timed_out) {
		(void)snprintf(response->message, sizeof(response->message), "no %s within %.3g s",
		               response->unsent ? "connection" : "answer",
		               (double)passed_timeout(t) / (double)EVREC_SECOND);
	} else if (t->result == CURLE_OUT_OF_MEMORY && response->unsent) {
		set_message(response, HTTP_NO_MEMORY);
	} else if (t->result == CURLE_COULDNT_CONNECT && client->sockets.error != 0) {
		(void)snprintf(response->message, sizeof(response->message), "no socket: %s",
		               strerror_r(client->sockets.error, reason, sizeof(reason)));
	} else {
		set_message(response, t->error[0] != '\0' ? t->error : curl_easy_strerror(t->result));
		response->unauthorized = transfer_is_lost(t) && t->port == client->refused_port;
		if (response->unauthorized) {
			response->body = buf_str(&client->refusal);
		}
	}
}

/* Kubernetes 1.36 closes a connection after a 401, which ends all requests in flight on it. */
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
	response->status = (int)transfer_status(t);
	if (t->result != CURLE_OK) {
		buf_clear(&t->body);
	}
	read_body(t, response);
	note_refusal(t, response->status);
}

void transfer_finish(struct transfer *t, struct http_response *response)
{
	t->used = t->used || transfer_status(t) != 0;
	response->old_credentials = t->version != t->client->credentials.version;
	response->sent_again = t->starts > 1;
	if (t->result == CURLE_OK || (t->starts != 0 && transfer_status(t) == 401)) {
		read_answer(t, response);
	} else {
		read_failure(t, response);
	}
	mem_free(t->sent);
	t->sent = NULL;
}
