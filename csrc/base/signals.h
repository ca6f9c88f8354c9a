/*
 * signals.h - keeps signals that evrec's own writes raise from the embedder's handlers, and from ending the process.
 * Any thread; block and unblock belong to the same one.
 */
#ifndef EVREC_SIGNALS_H
#define EVREC_SIGNALS_H

#include <signal.h>

#pragma GCC visibility push(hidden)

/* SIGPIPE, of a pipe or socket, and SIGXFSZ, of a file that may grow no further. */
struct signals {
	sigset_t ours; /* of the two, what was not pending before */
	sigset_t old;
};

void signals_block(struct signals *signals);
/* Discards those that came since signals_block. */
void signals_unblock(const struct signals *signals);

#pragma GCC visibility pop

#endif
