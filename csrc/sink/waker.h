/*
 * waker.h - the wait of a protocol's step, which another thread may end: an eventfd. For protocols without libcurl;
 * curl_multi_poll has a wakeup of its own.
 */
#ifndef EVREC_WAKER_H
#define EVREC_WAKER_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct waker {
	int fd; /* an eventfd; -1: none could be made, and waits are short */
};

void waker_open(struct waker *waker);
void waker_close(const struct waker *waker);
/* Ends the present wait, or the next one. Any thread. */
void waker_wake(const struct waker *waker);
/*
 * Waits until it is woken, until `fd` (-1: none) is ready for `events` of poll(2), or for `timeout` ns; does not wait
 * if that is not above 0. True: `fd` is ready.
 */
bool waker_wait(const struct waker *waker, int fd, short events, int64_t timeout);

#pragma GCC visibility pop

#endif
