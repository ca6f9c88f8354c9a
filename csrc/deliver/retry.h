/*
 * retry.h - the table of semantics 5: what to do next about a write, given the server's answer. Pure. Any thread.
 */
#ifndef EVREC_RETRY_H
#define EVREC_RETRY_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

enum verb { VERB_CREATE, VERB_PATCH };

enum verdict {
	VERDICT_DONE,   /* the server has it */
	VERDICT_EXISTS, /* a POST found its own earlier try: done, but what was folded in since is to be patched */
	VERDICT_AGAIN,  /* wait, then the same again */
	VERDICT_RELOAD, /* read the credentials again, wait, then the same again */
	VERDICT_CREATE, /* a PATCH found nothing: POST the whole event now */
	VERDICT_RENAME, /* POST under another name, now */
	VERDICT_DROP,
};

/* What is known of a write when its answer comes. */
struct retry_state {
	unsigned tries; /* answered before this one without success */
	bool uncertain; /* an earlier try of this POST may have reached the server */
	bool renamed;   /* it has had its second name */
};

struct retry_decision {
	enum verdict verdict;
	enum evrec_cause cause; /* of VERDICT_DROP */
	bool uncertain;         /* this try of a POST may have reached the server all the same */
	bool quiet;             /* not worth a report */
	bool place_refuses;     /* the namespace, whatever is written to it in that way */
};
struct retry_decision retry_decide(enum verb verb, const struct retry_state *state, const evrec_answer *answer);

/*
 * How long to wait after `tries` answers without success (1: the first): full jitter over a window that doubles from
 * 0.5 s to 30 s, or at least what the server asked for, which is believed up to 5 minutes. `random` is any 64 random
 * bits.
 */
int64_t retry_delay(unsigned tries, int64_t retry_after, uint64_t random);

/* The next of a sequence of random numbers, good enough for jitter (splitmix64). The state's owner locks. */
uint64_t retry_random(uint64_t *state);

#pragma GCC visibility pop

#endif
