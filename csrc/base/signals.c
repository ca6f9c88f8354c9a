#include "base/signals.h"

#include <stddef.h>
#include <time.h>

void signals_block(struct signals *signals)
{
	static const int both[] = { SIGPIPE, SIGXFSZ };
	sigset_t blocked, pending;

	(void)sigemptyset(&signals->ours);
	(void)sigemptyset(&blocked);
	(void)sigpending(&pending);
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		(void)sigaddset(&blocked, both[i]);
		if (sigismember(&pending, both[i]) != 1) {
			(void)sigaddset(&signals->ours, both[i]);
		}
	}
	(void)pthread_sigmask(SIG_BLOCK, &blocked, &signals->old);
}

void signals_unblock(const struct signals *signals)
{
	const struct timespec at_once = { 0, 0 };

	while (sigtimedwait(&signals->ours, NULL, &at_once) > 0) {
	}
	(void)pthread_sigmask(SIG_SETMASK, &signals->old, NULL);
}
