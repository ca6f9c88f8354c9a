/*
 * http_client.h - an HTTP client for one server, with concurrent requests over HTTP/2 if the server supports it.
 *
 * The client does no I/O by itself: http_client_step sends and receives without blocking, http_client_wait only waits.
 * All functions but http_client_wake belong to one thread at a time; so do the callbacks, which run inside
 * http_client_send and http_client_step, and may call none of the client's functions but http_client_connections and
 * http_client_reload_credentials. Proxies that the environment names are not used, redirects are not followed.
 */
#ifndef EVREC_HTTP_CLIENT_H
#define EVREC_HTTP_CLIENT_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct http_client;

/* All strings may be unset, except `server`. */
struct http_options {
	evrec_str server; /* http:// or https://host:port[/prefix] */
	/*
	 * A bearer token, and a file that renews it. If both are set, `token` stays in use for as long as the file
	 * cannot be read (a chroot).
	 */
	evrec_str token, token_file;
	evrec_str ca;                             /* PEM; unset: the system's authorities */
	evrec_str client_certificate, client_key; /* PEM, both or none */
	/* The files that renew these two, both or none. */
	evrec_str client_certificate_file, client_key_file;
	bool insecure_skip_tls_verify;
	const char *accept;     /* the Accept header's value; NULL: any */
	evrec_map headers;      /* sent with each request; their values are secret */
	const char *encoding;   /* the Content-Encoding of the bodies; NULL: none */
	unsigned max_in_flight; /* requests at once */
	int64_t timeout;        /* ns, of one request */
	long send_buffer; /* bytes of a body that go to the system at once, memory of each request; 0: 16 KiB, the least */
};

struct http_request {
	const char *method;
	const char *path;         /* below the server's URL, from "/" on, escaped */
	const char *content_type; /* static */
	char *body;               /* of mem_alloc, the client owns it from http_client_send on; NULL: none, for a GET */
	size_t body_len;
	void *ctx;         /* given back to `done` */
	size_t max_answer; /* bytes of the answer's body that are kept, 4 MiB at most; 0: 256 KiB */
	int64_t timeout;   /* ns, of this request; 0: that of the options */
	bool streamed;     /* the body of a 2xx goes to `chunk`, in parts of any size, and is not kept */
};

struct http_response {
	int status;     /* 0: there was no complete answer, `message` says why; a 401 is complete with its header */
	bool unsent;    /* status 0, and the server has certainly not received the request */
	bool timed_out; /* status 0 */
	bool bad_certificate; /* status 0, unsent: libcurl cannot use the client certificate and its key */
	bool too_long;        /* status 0: the answer was cut, as its body is longer than 4 MiB */
	int cut_status; /* status 0: the status of an incomplete answer, whose body is `body`; 0: there was no header */
	bool cut_early; /* cut_status came before all of the request was sent: the server certainly lacks a part */
	bool unauthorized;    /* status 0: the connection broke after another request on it was answered by 401 */
	bool old_credentials; /* the credentials that it was sent with were replaced */
	bool sent_again;     /* libcurl sent it twice, as a reused connection broke: this is the answer to the second */
	int64_t retry_after; /* ns, of the Retry-After header, also of an incomplete answer; 0: no header */
	evrec_str content_type; /* of the answer, borrowed like the body; unset: no header */
	/*
	 * The first max_answer bytes of the body of the answer (even an incomplete one), or of that 401; borrowed until
	 * `done` returns.
	 */
	evrec_str body;
	bool body_cut;     /* there was more of it */
	char message[256]; /* of status 0: UTF-8, for people */
};

struct http_events {
	/* A request that http_client_send took has ended. */
	void (*done)(void *owner, void *ctx, const struct http_response *response);
	/*
	 * The next bytes of a streamed answer, borrowed for the call; NULL if no request is streamed. False: cancels
	 * the request, which ends with status 0.
	 */
	bool (*chunk)(void *owner, void *ctx, evrec_str bytes);
	/* A file of credentials cannot be read again; the former credentials stay in use. */
	void (*warn)(void *owner, const char *message);
};

/*
 * Loads libcurl, and initializes it and its libraries, once in a process. True: this call did so. Call it before the
 * first http_client_send or _step, and before the atexit() of a handler that uses a client. Any thread.
 */
bool http_global_init(void);

/* The last call of a thread that has used a client: makes fork() wait until the thread has ended. */
void http_end_thread(void);

/*
 * Loads libcurl, unless it is loaded, and checks ranges and forms: 0, EVREC_EINVALID with the option that is wrong in
 * the message, EVREC_ENOMEM, or EVREC_ESYSTEM if there is no libcurl.
 */
int http_check_options(const struct http_options *options, evrec_error *err);

/* Checks and copies `options` and copies `events`; opens nothing. NULL: EVREC_EINVALID or EVREC_ENOMEM. */
struct http_client *http_client_new(const struct http_options *options, const struct http_events *events, void *owner,
                                    evrec_error *err);
/*
 * Begins a request; `done` is called at its end. False: it was not begun, `response` has status 0, unsent and a
 * message, and `done` is not called. Owns request->body in both cases.
 */
bool http_client_send(struct http_client *client, const struct http_request *request, struct http_response *response);
/* Sends and receives without blocking. True: a request has ended. */
bool http_client_step(struct http_client *client);
/*
 * Waits until a step has something to do or http_client_wake is called, `timeout` ns at most: 0 to an hour. If one of
 * many requests was answered, waits for further answers, too, for 4 ms at most, which neither a wake nor the timeout
 * ends.
 */
void http_client_wait(struct http_client *client, int64_t timeout);
/* Likewise, and also until one of `fds`, 2 at most, can be read. */
void http_client_wait_with(struct http_client *client, int64_t timeout, const int *fds, size_t n);
/* Ends the present wait, or the next one. Any thread. */
void http_client_wake(struct http_client *client);
/*
 * How many connections the client has tried to open so far. A change between two answers means that there is a new
 * connection.
 */
unsigned http_client_connections(const struct http_client *client);
/*
 * False: one more request would wait for a connection, and use up its timeout meanwhile. If the last answer came without
 * HTTP/2, each request under way takes a connection, and there are 4 of them. True before the first answer.
 */
bool http_client_has_room(const struct http_client *client);
/* The next request reads the files of credentials first, changed or not. */
void http_client_reload_credentials(struct http_client *client);
/* Keeps a duplicate of this descriptor of the token file's folder, to read the file from within a chroot. */
void http_client_keep_token_folder(struct http_client *client, int folder);
/*
 * From now on connects to the addresses in this entry of addresses_look_up, which is copied, and does not look up the
 * server's name. Once, before the first send. False: no memory.
 */
bool http_client_keep_addresses(struct http_client *client, const char *entry);
/*
 * Replaces the token (unset: there is none), and the client certificate and key unless they are unset. Requests in
 * flight keep their credentials; connections with an old certificate get no further requests. EVREC_EINVALID: one is
 * not valid, and the message begins with its name; EVREC_ENOMEM. After an error the old ones stay in use.
 */
int http_client_set_credentials(struct http_client *client, evrec_str token, evrec_str certificate, evrec_str key,
                                evrec_error *err);
/* Overwrites in `text` the token in use and the values of headers, as a server may quote them in an answer. */
void http_client_hide_secrets(const struct http_client *client, char *text);
/* Cuts off the requests under way; `done` is not called for them. NULL is fine. */
void http_client_free(struct http_client *client);

#pragma GCC visibility pop

#endif
