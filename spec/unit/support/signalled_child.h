/* signalled_child.h - a forked child that records, is sent a signal by itself, and goes on until the signal ends it. */
#ifndef EVREC_UNIT_SIGNALLED_CHILD_H
#define EVREC_UNIT_SIGNALLED_CHILD_H

#include "sender_fixture.h"

#include <signal.h>

#define WRITES 30 /* of each child */

enum pastime { SLEEPS, RUNS, READS, POLLS, EXITS };
/* ThreadSanitizer delivers no signal to a thread that is in a read. */
#define BLOCKED (UNDER_TSAN ? SLEEPS : READS)

struct signalled_child {
	bool threadless, functions, release, hang;
	bool deferred;     /* the writes would be due in an hour */
	unsigned failures; /* answers 500 before the first success */
	enum pastime pastime;
	int64_t timeout; /* 0: that of most tests */
	int second;      /* a signal that follows SIGTERM; 0: none */
	bool init;       /* it is process 1 */
};

/* In the child: records, sends SIGTERM, and passes the time. `success_fd` gets a byte for each write; -1: none does. */
_Noreturn void signalled_child_live(const struct signalled_child *c, int success_fd);

/* In the test: runs such a child. Returns how many writes were made; *status is that of waitpid. */
unsigned signalled_child_run(struct signalled_child c, int *status);

#endif
