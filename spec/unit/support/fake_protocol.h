/*
 * fake_protocol.h - a sink's protocol that sends nothing: it holds each entry and answers it in a step, as the test tells
 * it to. For one entry a request.
 */
#ifndef EVREC_UNIT_FAKE_PROTOCOL_H
#define EVREC_UNIT_FAKE_PROTOCOL_H

#include "fake_write.h"

#include <pthread.h>

#define FAKE_PROTOCOL_IDS 256

/*
 * The sender owns and frees it. While a sender's thread runs, the fields below `lock` are read and written with `lock`
 * held; sender_fixture.h has functions for that.
 */
struct fake_protocol {
	struct protocol base;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* How it behaves: */
	bool hangs;              /* send does not return */
	bool silent;             /* no step answers */
	bool answers_in_send;    /* answers before send returns */
	bool ignores_wake;       /* a step that waits is not ended by a wake */
	unsigned answers_a_step; /* at most; 0: all */
	int status;              /* HTTP status of every answer, */
	unsigned failures;       /* but for so many first ones, which are 500 */
	int64_t retry_after;     /* of every answer, in ns */
	int64_t delay;           /* ns before each answer of a step */
	int64_t free_takes;      /* ns from when nothing may use it any more */
	int success_fd;          /* gets a byte for each 201; -1: none */
	/* Its state, and what it has seen: */
	bool woken;
	bool is_waiting; /* the last step that found nothing to answer was to wait */
	unsigned sent, unauthorized;
	unsigned held_len, most_held;
	unsigned sent_by_id[FAKE_PROTOCOL_IDS]; /* how often "n<i>" was sent */
	struct entry *held[64];
	bool signals_blocked; /* in the last call of send, */
	char thread_name[16]; /* and the name of its thread */
	unsigned *freed;      /* counts frees of protocols; NULL: none is counted */
};

/* A protocol that needs a thread, answers 201, and has 8 requests in flight at most. `freed`: as above. */
struct fake_protocol *fake_protocol_new(unsigned *freed);

/* Lets it work without a thread, as a protocol without I/O: all is done in calls of sender_step. Set before sender_new. */
void fake_protocol_without_io(struct fake_protocol *protocol);

#endif
