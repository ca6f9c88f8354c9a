/*
 * transport.h - one way of carrying writes out: HTTP, a file, functions. A function table, as hiredis has it.
 *
 * A transport is created by whoever configures a sink, handed to a sender, and then used by one thread at a time: the
 * sender's, or the one that polls. Only `wake` may be called from any thread. What it writes to is not opened before
 * the first `send`; creating one has no side effects.
 */
#ifndef EVREC_TRANSPORT_H
#define EVREC_TRANSPORT_H

#include "deliver/outbox.h"

#pragma GCC visibility push(hidden)

struct transport;
struct sender;

/* How the lane's items become bytes; what the transport asks for. */
enum body { BODY_CREATE, BODY_PATCH, BODY_WHOLE };
struct request {
	char *ns, *name; /* of the event, not escaped */
	char *body;      /* JSON */
	size_t body_len;
};
/* Freed with request_free. False where there is no memory. Called without a lock, for an item in flight. */
typedef bool encode_func(const void *item, enum body body, struct request *request);
void request_free(struct request *request);

struct transport_ops {
	bool threaded; /* does I/O, and calls nothing of the embedder's: give it a thread */
	/* Begins a request; it ends in one sender_answered, from in here or from a later step. */
	void (*send)(struct transport *t, struct sender *s, struct entry *entry);
	/* Carries on with what was begun; waits for I/O or wake, `timeout` ns at most: 0 to an hour. */
	void (*step)(struct transport *t, struct sender *s, int64_t timeout);
	void (*wake)(struct transport *t); /* ends the wait of a step, now or the next one; NULL: never waits */
	void (*reload_credentials)(struct transport *t); /* may be NULL */
	void (*free)(struct transport *t);               /* requests under way are cut off, unanswered */
};

struct transport {
	const struct transport_ops *ops;
};

/* Sets up what the transports' libraries want set up once in a process: before the first send, and before atexit. */
void transport_global_init(void);

/*
 * An HTTP transport to an API server; `options` is checked, and copied. `token` and `token_file` may both be set here:
 * then `token` is what the file held when it was configured, and stays in use where the file cannot be read any more
 * (a chroot). Proxies that the environment names are not used.
 */
struct transport *http_transport_new(const evrec_kubernetes_options *options, encode_func *encode, evrec_error *err);
/*
 * Checks ranges and forms, naming the option that is wrong: 0 or EVREC_EINVALID. No I/O. Whether token and token_file
 * may both be set is the caller's to say.
 */
int http_check_options(const evrec_kubernetes_options *options, evrec_error *err);
/* The trimmed contents of a token file, freed with mem_free; NULL: unreadable, empty, too long, or not a token. */
char *token_file_read(const char *path, evrec_error *err);
/*
 * One line of JSON a write, appended; "-" is standard output. The file is made where it is not there. After a line that
 * could not be written whole the next one starts on a line of its own.
 *
 * A pipe, a socket or a terminal that is full is waited for in step, never in a write. One line is under way at a time,
 * so the sender's max_in_flight has to be 1. A line that was cut off, in the end, is dropped with its entry.
 *
 * Only where that is standard output, and others fill it at that very moment, may a write wait: on a pipe before Linux
 * 6.4, and on a terminal.
 */
struct transport *file_transport_new(const char *path, encode_func *encode, evrec_error *err);

#pragma GCC visibility pop

#endif
