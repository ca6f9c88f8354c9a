#include "share/share_inner.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RETRY (100 * MS)          /* until the next try, if no owner was found */
#define RETRY_HEIR (20 * MS)      /* until the next try, if an heir is about to bind */
#define RETRY_FAILED EVREC_SECOND /* until the next try, after a system error */
#define CLOSING_LAST (500 * MS)   /* before a process that is about to end becomes the owner */

void share_tell(struct share *s, const char *message, const char *name)
{
	if (strcmp(s->told, message) != 0) {
		(void)snprintf(s->told, sizeof(s->told), "%s", message);
		s->ops->error(s->ctx, message, name);
	}
}

/* ---- who is the owner ---- */

static void try_connect(struct share *s, int64_t now)
{
	evrec_error err = { 0 };

	switch (endpoint_connect(&s->endpoint, &s->link.line.copied, &s->link.line.fd, &err)) {
	case ENDPOINT_OK:
		worker_begin(s, now);
		break;
	case ENDPOINT_REFUSED:
	case ENDPOINT_FAILED:
		share_tell(s, err.message, err.code == EVREC_EINVALID ? "share_refused" : "share");
		s->next_try = now + RETRY_FAILED;
		break;
	default:
		s->next_try = now + (now < s->bind_from || s->closing_since != 0 ? RETRY_HEIR : RETRY);
		if (atomic_load(&s->may_own)) {
			/* A process owns the name, as binding failed, and does not accept connections. */
			silence_step(s, now);
		}
	}
}

static bool may_bind(struct share *s, int64_t now)
{
	if (!atomic_load(&s->may_own) || now < s->bind_from) {
		return false;
	}
	if (!atomic_load(&s->closing) || s->is_heir || !s->was_worker) {
		return true;
	}
	if (s->closing_since == 0) {
		s->closing_since = now;
	}
	return now - s->closing_since >= CLOSING_LAST;
}

void share_has_bound(struct share *s)
{
	s->bound_at = s->was_worker ? clock_monotonic(evrec_clock_real()) : s->bound_at;
	s->told[0] = '\0';
}

static void elect(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	enum endpoint_result result = may_bind(s, now) ? endpoint_bind(&s->endpoint, &err) : ENDPOINT_IN_USE;

	if (result == ENDPOINT_OK) {
		share_has_bound(s);
		silence_is_over(s, now);
	} else if (s->refused && atomic_load(&s->leaves)) {
		s->alone = true;
	} else if (result == ENDPOINT_FAILED) {
		share_tell(s, err.message, "share");
		s->next_try = now + RETRY_FAILED;
	} else {
		try_connect(s, now);
	}
}

/* ---- a step ---- */

static void poll_one(struct share *s, size_t i, int fd, short events)
{
	s->polled[i] = (struct pollfd){ .fd = fd, .events = events };
}

/* Room for the wake, the endpoint, and all connections. */
static bool reserve_polled(struct share *s)
{
	const size_t need = s->peers_len + 3;
	struct pollfd *polled;

	if (need <= s->polled_room) {
		return true;
	}
	polled = mem_realloc(s->polled, 2 * need * sizeof(*polled));
	if (polled == NULL) {
		return false;
	}
	s->polled = polled;
	s->polled_room = 2 * need;
	return true;
}

static void wait_for_work(struct share *s, int64_t now, int64_t timeout)
{
	const bool accepts = s->next_accept <= now, leaves = atomic_load(&s->leaves);
	const short more = s->link.line.out.len != 0 ? POLLOUT : 0;
	size_t n = 3;

	if (!reserve_polled(s)) {
		return;
	}
	poll_one(s, 0, s->wake_fd, POLLIN);
	poll_one(s, 1, accepts ? s->endpoint.fd : -1, POLLIN);
	poll_one(s, 2, s->link.line.fd, (short)(POLLIN | more));
	for (const struct peer *p = s->peers; p != NULL; p = p->next) {
		const short in = leaves || peer_is_full(s, p) ? 0 : POLLIN;
		const short out = p->line.out.len != 0 ? POLLOUT : 0;

		/* The end of a worker is noticed when reading or sending. */
		poll_one(s, n++, leaves && out == 0 ? -1 : p->line.fd, (short)(in | out));
		timeout = in != 0 && p->rest.len != 0 ? 0 : timeout;
	}
	if (!accepts && timeout > s->next_accept - now) {
		timeout = s->next_accept - now;
	}
	(void)poll(s->polled, n, (int)((timeout + MS - 1) / MS));
}

static void take_wake(const struct share *s)
{
	uint64_t n;

	if (s->wake_fd >= 0) {
		(void)!read(s->wake_fd, &n, sizeof(n));
	}
}

void share_step(struct share *s, int64_t now, int64_t timeout)
{
	const bool looks = s->endpoint.fd < 0 && s->link.phase == LINK_NONE && !s->alone;

	if (looks && s->refused && atomic_load(&s->leaves)) {
		s->next_try = now;
	}
	if (s->wake_fd < 0) {
		/* If this fails, a step cannot be woken, and waits for its timeout. */
		s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	if (looks && s->next_try > now && timeout > s->next_try - now) {
		timeout = s->next_try - now;
	}
	if (timeout > 0 && (!looks || s->next_try > now)) {
		const int64_t before = clock_monotonic(evrec_clock_real());

		wait_for_work(s, now, timeout);
		now += clock_monotonic(evrec_clock_real()) - before;
	}
	take_wake(s);
	if (looks && s->next_try <= now) {
		elect(s, now);
	}
	if (s->endpoint.fd >= 0 || s->alone) {
		if (share_role(s) == SHARE_OWNER || owner_begin(s)) {
			owner_step(s, now);
		}
	} else if (s->link.phase != LINK_NONE) {
		worker_step(s, now);
	}
}

bool share_decline(struct share *s)
{
	s->declines = true;
	if (s->link.phase == LINK_NONE) {
		return true;
	}
	share_close(s);
	return !s->link.accepted;
}

/* Drops one event of the ledger. False: there is none. */
static bool drop_next(struct share *s)
{
	struct ledger_item item;
	struct frame_event event;
	bool ok;

	share_lock(s);
	ok = ledger_drop_next(s->ledger, EVREC_CAUSE_CLOSED, &item);
	share_unlock(s);
	if (ok && frame_event_read(item.bytes, &event, NULL) == 0) {
		s->ops->lost(s->ctx, &event.fields, 0, EVREC_CAUSE_CLOSED, item.times.n);
		frame_event_destroy(&event);
	}
	return ok;
}

void share_drop_all(struct share *s)
{
	share_lock(s);
	ledger_disconnect(s->ledger);
	share_unlock(s);
	while (drop_next(s)) {
	}
}

void share_end(struct share *s, int64_t timeout)
{
	const int64_t deadline = clock_monotonic(evrec_clock_real()) + timeout;
	evrec_error err = { 0 };

	if (s->link.phase != LINK_NONE) {
		worker_leave(s, deadline);
	}
	if (s->endpoint.fd < 0 && s->is_heir && endpoint_bind(&s->endpoint, &err) == ENDPOINT_OK) {
		share_has_bound(s);
	}
	if (s->endpoint.fd >= 0 || s->alone) {
		owner_end(s, deadline);
	}
	s->next_try = INT64_MAX;
	s->refused = false;
	share_drop_all(s);
}
