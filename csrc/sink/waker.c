#include "sink/waker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK (EVREC_SECOND / 10) /* if nothing can wake a wait */
#define MILLISECOND (EVREC_SECOND / 1000)

void waker_open(struct waker *waker)
{
	waker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void waker_close(const struct waker *waker)
{
	if (waker->fd >= 0) {
		(void)close(waker->fd);
	}
}

void waker_wake(const struct waker *waker)
{
	if (waker->fd >= 0) {
		(void)eventfd_write(waker->fd, 1);
	}
}

bool waker_wait(const struct waker *waker, int fd, short events, int64_t timeout)
{
	struct pollfd fds[] = { { .fd = waker->fd, .events = POLLIN }, { .fd = fd, .events = events } };
	eventfd_t wakes;

	if (waker->fd < 0 && timeout > LOOK) {
		timeout = LOOK;
	}
	if (poll(fds, 2, timeout <= 0 ? 0 : (int)((timeout + MILLISECOND - 1) / MILLISECOND)) <= 0) {
		return false;
	}
	if (fds[0].revents != 0) {
		(void)eventfd_read(waker->fd, &wakes);
	}
	return fds[1].revents != 0;
}
