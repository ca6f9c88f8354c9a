/*
 * http_inner.h - what the files of the HTTP transport share: http.c has libcurl's multi handle and the transport's
 * functions, http_transfer.c one request and its answer. The transport's thread, but for what `lock` guards.
 */
#ifndef EVREC_HTTP_INNER_H
#define EVREC_HTTP_INNER_H

#include "deliver/credentials.h"
#include "deliver/transport.h"

#include <curl/curl.h>
#include <pthread.h>

#pragma GCC visibility push(hidden)

struct http {
	struct transport base;
	encode_func *encode;
	struct credentials credentials;
	char *server;                 /* without a slash at the end */
	char *ca, *certificate, *key; /* PEM, or NULL */
	bool insecure;
	int64_t timeout;
	unsigned max_in_flight;
	struct curl_slist *create_headers, *patch_headers;
	struct transfer *idle, *active; /* `active` is linked both ways */
	size_t in_flight;
	bool stale;           /* a connection kept silent: use no old one once nothing is in flight */
	pthread_mutex_t lock; /* so that `multi` is not closed while it is woken */
	CURLM *multi;         /* NULL before the first send */
	bool woken;           /* while there was none */
};

/* A request, and the easy handle that is used for one after another. */
struct transfer {
	struct http *http;
	struct transfer *prev, *next;
	CURL *easy;
	struct entry *entry;
	struct request request;
	struct buf body;
	size_t received;        /* bytes of body, stored or not */
	unsigned starts;        /* how often libcurl began to send it */
	unsigned token_version; /* of the token that `easy` holds */
	bool used;              /* `easy` has had an answer */
	char error[CURL_ERROR_SIZE];
};

struct transfer *transfer_new(struct http *http); /* NULL: no memory */
void transfer_free(struct transfer *t);           /* not while it is in the multi handle */
/* Makes the request for `entry`. False: it cannot be sent, and *answer says why. */
bool transfer_prepare(struct transfer *t, struct entry *entry, evrec_answer *answer);
/* What became of it, given libcurl's result; forgets the request. */
void transfer_finish(struct transfer *t, CURLcode result, evrec_answer *answer);

#pragma GCC visibility pop

#endif
