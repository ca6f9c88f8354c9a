/*
 * protocol.h - the interface of a sink to the outbox and the sender: how writes are sent, and what an answer means for
 * each.
 *
 *   sender:    takes up to max_batch entries from the outbox ---> send(protocol, sender, entries, n)
 *   protocol:  encodes them, sends one request, reads the answer
 *                for each write     sender_answered(sender, entry, &outcome)
 *                for the request    sender_request_ended(sender, result, retry_after)
 *
 * The outbox acts on an outcome without knowing the request: only the protocol knows status codes, URLs and formats.
 * Kubernetes, file and callback (room sink) are protocols.
 *
 * A protocol is made by its sink's configuration and then belongs to one sender: the sender's driver calls all
 * functions but wake, one at a time. Making a protocol has no side effects; it opens nothing before the first send.
 */
#ifndef EVREC_PROTOCOL_H
#define EVREC_PROTOCOL_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct entry;
struct notes;
struct protocol;
struct sender;

/* How a write is sent: as a new object, or as a change of one that the server has. */
enum verb { VERB_CREATE, VERB_PATCH };

enum verdict {
	VERDICT_WRITTEN, /* the server has it */
	VERDICT_EXISTS, /* the name is that of the write's own object (entry_may_exist): occurrences that it lacks are patched */
	VERDICT_RETRY,  /* the same again, after a backoff */
	VERDICT_CREATE, /* the object to be patched is gone: create it, at once */
	VERDICT_RENAME, /* the name belongs to another object: create it under a new one, at once */
	VERDICT_ADOPT, /* an earlier process created the object, as `name` with `base` occurrences: patch that, at once */
	VERDICT_AGAIN, /* the protocol held it back, and did not send it: it waits again, not counted as a try */
	VERDICT_DROP,
};

/* The meaning of an answer, or of the lack of one, for one write. All zero is a plain success. */
struct outcome {
	enum verdict verdict;
	enum evrec_cause cause; /* of VERDICT_DROP */
	bool unanswered; /* VERDICT_RETRY: there was no answer; due again as soon as the server answers anything */
	bool refused;    /* VERDICT_RETRY: the server had no room for it; only the throttle says when it is due again */
	bool maybe_received;   /* this try of a create may have been carried out all the same */
	bool maybe_late;       /* this try of a patch may be carried out later still */
	bool blocks_namespace; /* any write with this verb to this namespace would be dropped for the same cause */
	bool once;             /* messages that are equal from byte `once_from` on are reported only once */
	size_t once_from;
	int64_t retry_after; /* ns that the server asked to wait; 0: it did not say */
	uint64_t request;    /* VERDICT_RETRY: the number of the request, whose writes back off together; 0: alone */
	uint32_t base;       /* of VERDICT_ADOPT */
	const char *problem; /* the kind of error for on_error, static: "forbidden"; NULL: nothing to report */
	/* Strings, of which only the first byte need be set. */
	char name[256]; /* the name that the server gave the object; empty: the name it was sent with */
	char resource_version[64];
	char message[320]; /* of `problem`, for people */
};

/* How a request ended, for the throttle. */
enum request_result {
	REQUEST_SUCCEEDED,
	REQUEST_REFUSED,    /* the server says that it has too much to do: 429, 503 */
	REQUEST_TIMED_OUT,  /* no answer within the request's timeout, or a 408 or 504: it has too much to do as well */
	REQUEST_UNANSWERED, /* the connection broke, or could not be made; or the server does not know us (401) */
	REQUEST_OTHER,      /* an answer that says nothing of the server's load, such as 403, 404, 409 or 500 */
};

struct protocol_ops {
	/* Sets up the libraries that the protocol needs, once in a process; true: this call did. NULL: none. Any thread. */
	bool (*init_library)(void);
	/* The last call of a thread that has driven the protocol, which may be freed already. NULL: none. */
	void (*end_thread)(void);
	/* True: it does I/O and calls nothing of the embedder's, so that a thread may drive it. */
	bool does_io;
	/*
	 * Called before each request, while an entry is due. False: the protocol has no credentials or no connection for
	 * the request yet, and gets them in its steps; until then entries wait, and use up no tries. NULL: it is always
	 * ready.
	 */
	bool (*ready)(struct protocol *p);
	/*
	 * Begins one request for n entries, 1 to max_batch, in their order. Later, or before it returns, sender_answered
	 * is called once for each of them, then sender_request_ended once. A write that the protocol holds back, until
	 * it answers VERDICT_AGAIN, does not keep the request open: it may be answered after sender_request_ended.
	 */
	void (*send)(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n);
	/*
	 * Drives the requests in flight; waits for I/O or wake for up to `timeout` ns, 0 to an hour. NULL: nothing to
	 * do.
	 */
	void (*step)(struct protocol *p, struct sender *s, int64_t timeout);
	/* Ends the wait of a step, the present one or the next one. Any thread. NULL: step never waits. */
	void (*wake)(struct protocol *p);
	/* The API by which new objects are sent at present. Any thread. NULL: that of the sink's options, always. */
	enum evrec_api (*api)(struct protocol *p);
	/*
	 * The protocol's queue of notes (event/notes.h), which lives as long as the protocol. NULL, as result or as
	 * function: it keeps no notes. A protocol with such a queue has `wake` and `finish`. Any thread.
	 */
	struct notes *(*notes)(struct protocol *p);
	/*
	 * After the last round, maybe more than once: does the work that the protocol has put off. NULL: there is none.
	 */
	void (*finish)(struct protocol *p, struct sender *s);
	/* Frees it. Requests under way are cut off without an answer. */
	void (*free)(struct protocol *p);
};

/* Embedded as the first member of each protocol. */
struct protocol {
	const struct protocol_ops *ops;
	size_t max_batch;       /* writes in one request; at least 1 */
	unsigned max_in_flight; /* requests under way at once; at least 1 */
	int64_t batch_delay;    /* ns that a write waits for max_batch of them; 0: none waits */
	bool append_only;       /* the receiver appends each write: see outbox_append_only */
};

#pragma GCC visibility pop

#endif
