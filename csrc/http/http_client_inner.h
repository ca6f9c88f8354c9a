/*
 * http_client_inner.h - the structs that the files of the HTTP client share: http_client.c has the requests in flight,
 * http_transfer.c one request, http_answer.c its answer, http_multi.c libcurl's multi handle, addresses.c the server's
 * addresses. All of it belongs to the client's thread, except what `lock` guards.
 */
#ifndef EVREC_HTTP_CLIENT_INNER_H
#define EVREC_HTTP_CLIENT_INNER_H

#include "http/credentials.h"
#include "http/curl.h"
#include "http/guard.h"
#include "http/http_client.h"

#include <pthread.h>

#pragma GCC visibility push(hidden)

#define HTTP_NO_MEMORY "no memory for the request"
#define RECEIVED_MAX ((size_t)4 * 1024 * 1024) /* bytes of an answer's body, in all */

struct http_client {
	struct http_events events;
	void *owner;
	struct credentials credentials;
	char *server;      /* without a slash at the end */
	char *accept;      /* the whole header */
	char *encoding;    /* likewise */
	evrec_map headers; /* in `headers_block` */
	void *headers_block;
	char *ca;                     /* PEM, or NULL */
	bool ca_unsupported;          /* this libcurl takes no CA certificate from memory: every request fails */
	struct curl_slist *addresses; /* of the server's name, for CURLOPT_RESOLVE; NULL: libcurl looks it up */
	bool insecure;
	int64_t timeout;
	int64_t connect_timeout; /* of the connection that a request needs */
	unsigned max_in_flight;
	long send_buffer;
	struct sockets sockets;
	struct guard guard;
	/*
	 * A moving average of the time to an answer; 0: there was none. It excludes the wait for a connection:
	 * gathering answers makes that longer, so including it would make gathering ever longer.
	 */
	int64_t answer_time;
	int refused_port;               /* local, of the connection whose last answer was 401; 0: none */
	struct buf refusal;             /* that answer's body */
	struct transfer *idle, *active; /* `active` is linked both ways */
	size_t in_flight;
	bool http1;           /* the connection of the last request spoke HTTP/1, or its version is unknown */
	bool answered_http1;  /* the last answer came over HTTP/1 */
	bool stale;           /* a connection did not answer: once nothing is in flight, use only new ones */
	pthread_mutex_t lock; /* so that `multi` is not closed while it is woken */
	CURLM *multi;         /* NULL before the first send or step */
	bool woken;           /* http_client_wake was called while there was no `multi` */
};

/* A request, and its easy handle, which is reused for later requests. */
struct transfer {
	struct http_client *client;
	struct transfer *prev, *next;
	CURL *easy;
	struct curl_slist *headers;
	const char *content_type; /* the one in `headers`; NULL: there are no headers */
	void *ctx;
	char *sent; /* the request's body */
	size_t sent_len;
	struct buf body;
	CURLcode result;
	int port;         /* local, of the connection that it was sent on */
	size_t received;  /* bytes of body, stored or not */
	size_t max_body;  /* how many bytes are stored at most */
	int64_t timeout;  /* of this request */
	bool streamed;    /* a 2xx is given to the client's owner part by part */
	unsigned starts;  /* how often libcurl began to send it */
	int64_t started;  /* when it last did so, monotonic: from then on there was a connection */
	unsigned breaks;  /* the guard's, before this request */
	unsigned version; /* of the credentials that `easy` holds */
	bool used;        /* `easy` has had an answer, or at least its header */
	char error[CURL_ERROR_SIZE];
};

bool multi_open(struct http_client *client);  /* unless it is open; false: no memory, or no descriptors */
void multi_close(struct http_client *client); /* without a request in it */

struct transfer *transfer_new(struct http_client *client); /* NULL: no memory, or client->ca_unsupported */
void transfer_free(struct transfer *t);                    /* not while it is in the multi handle */
/* The status of its answer; 0: there was no header. */
static inline long transfer_status(const struct transfer *t)
{
	long status = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}
/* Owns request->body, also if there is no memory: false. */
bool transfer_prepare(struct transfer *t, const struct http_request *request);
/* By t->result: the connection speaks HTTP/1, over which `easy` must not read an answer; nothing was sent. */
bool transfer_is_refused(const struct transfer *t);
/* The same request once more, with a new handle, after it was refused. False: no memory. */
bool transfer_prepare_again(struct transfer *t);
/* By t->result: the connection broke after the request was sent, or while it was. */
bool transfer_is_lost(const struct transfer *t);
/*
 * Makes the response of t->result, and forgets the request. The response borrows t->body and the client's refusal,
 * until the next request or 401.
 */
void transfer_finish(struct transfer *t, struct http_response *response);
/* The response is not needed any more: frees a body that was longer than most. */
void transfer_forget(struct transfer *t);

#pragma GCC visibility pop

#endif
