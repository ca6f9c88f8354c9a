/*
 * signals.h - blocks the signals that evrec's own writes raise, so that they run no handler of the embedder and do not
 * end the process. Any thread; block and unblock are called by the same one.
 */
#ifndef EVREC_SIGNALS_H
#define EVREC_SIGNALS_H

#include <signal.h>

#pragma GCC visibility push(hidden)

/* SIGPIPE, of a pipe or socket, and SIGXFSZ, of a file that may grow no further. */
struct signals {
	sigset_t ours; /* which of the two were not pending before */
	sigset_t old;
};

void signals_block(struct signals *signals);
/* Discards the signals that were raised since signals_block. */
void signals_unblock(const struct signals *signals);

#pragma GCC visibility pop

#endif
