#define _GNU_SOURCE /* getrandom */

#include "share/share_inner.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define RETRY (100 * MS)          /* until the next try, if nobody could be connected to */
#define RETRY_HEIR (20 * MS)      /* if an heir is about to be there */
#define RETRY_FAILED EVREC_SECOND /* if the system refuses */
#define CLOSING_LAST (500 * MS)   /* before a process that is about to end becomes the owner */

/* ---- making ---- */

static void make_instance(struct share *s)
{
	const int64_t now = evrec_clock_now(evrec_clock_real());
	const int64_t pid = getpid();

	if (getrandom(s->instance, sizeof(s->instance), GRND_NONBLOCK) != (ssize_t)sizeof(s->instance)) {
		memcpy(s->instance, &now, sizeof(now));
		memcpy(s->instance + sizeof(now), &pid, sizeof(pid));
	}
}

static bool copy_users(struct share *s)
{
	unsigned *users;

	if (s->options.users_len == 0) {
		s->options.users = NULL;
		return true;
	}
	users = mem_alloc(s->options.users_len * sizeof(*users));
	if (users != NULL) {
		memcpy(users, s->options.users, s->options.users_len * sizeof(*users));
	}
	s->options.users = users;
	return users != NULL;
}

struct share *share_new(const struct share_options *options, const struct share_ops *ops, void *ctx, evrec_error *err)
{
	struct endpoint endpoint;
	struct share *s;

	if (endpoint_init(&endpoint, options->name, err) != 0) {
		return NULL;
	}
	s = mem_zalloc(sizeof(*s));
	if (s != NULL) {
		(void)pthread_mutex_init(&s->lock, NULL);
		s->wake_fd = s->link.line.fd = -1;
		s->endpoint = endpoint;
		s->options = *options;
		atomic_init(&s->may_own, !options->client_only);
		s->options.name = (evrec_str){ NULL, 0 };
		s->ops = ops;
		s->ctx = ctx;
		s->next_try = s->bind_from = s->bound_at = INT64_MIN;
		s->most_events = options->limits.max_events;
		make_instance(s);
		if (copy_users(s)) {
			s->ledger = ledger_new(&options->limits);
			s->in = mem_alloc(FRAME_MAX);
		}
	}
	if (s == NULL || s->ledger == NULL || s->in == NULL) {
		share_free(s);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	return s;
}

static void close_copy(int fd)
{
	if (fd >= 0) {
		(void)close(fd);
	}
}

void share_free(struct share *s)
{
	if (s == NULL) {
		return;
	}
	owner_free(s);
	endpoint_close(&s->endpoint);
	line_close(&s->link.line);
	buf_free(&s->link.whole);
	close_copy(s->wake_fd);
	share_forget_state(s);
	ledger_free(s->ledger);
	buf_free(&s->scratch);
	mem_free(s->same);
	mem_free(s->names);
	mem_free(s->polled);
	mem_free(s->in);
	mem_free((void *)(uintptr_t)s->options.users);
	(void)pthread_mutex_destroy(&s->lock);
	mem_free(s);
}

void share_forget_state(struct share *s)
{
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		buf_free(&s->state[i]);
	}
}

void share_abandon(const struct share *s)
{
	close_copy(s->wake_fd);
}

bool share_set_options(struct share *s, const struct frame_option *options, size_t n, size_t sinks)
{
	struct frame_option *same = mem_alloc((n + 1) * sizeof(*same)), *old;
	char *names, *old_names, *at;
	size_t i, room = 1;

	for (i = 0; i < n; i++) {
		room += options[i].name.len;
	}
	names = mem_alloc(room);
	if (same == NULL || names == NULL || sinks > FRAME_SINKS) {
		mem_free(same);
		mem_free(names);
		return false;
	}
	at = names;
	for (i = 0; i < n; i++) {
		memcpy(at, options[i].name.data, options[i].name.len);
		same[i] = (struct frame_option){ { at, options[i].name.len }, options[i].hash };
		at += options[i].name.len;
	}
	share_lock(s);
	old = s->same;
	old_names = s->names;
	s->same = same;
	s->same_len = n;
	s->names = names;
	s->sinks = sinks;
	s->changed = true;
	ledger_set_sinks(s->ledger, sinks);
	share_unlock(s);
	mem_free(old);
	mem_free(old_names);
	return true;
}

void share_set_limits(struct share *s, const struct ledger_limits *limits)
{
	share_lock(s);
	ledger_set_limits(s->ledger, limits);
	if (limits->max_events > s->most_events) {
		s->most_events = limits->max_events;
	}
	share_unlock(s);
}

/* ---- what any thread does ---- */

void share_may_own(struct share *s)
{
	atomic_store(&s->may_own, true);
	share_wake(s);
}

enum share_role share_role(const struct share *s)
{
	return atomic_load(&s->role);
}

void share_wake(struct share *s)
{
	const uint64_t one = 1;

	if (s->wake_fd >= 0) {
		(void)!write(s->wake_fd, &one, sizeof(one));
	}
}

enum share_result share_add(struct share *s, const evrec_fields *event, const struct frame_keys *keys, int64_t at,
                            enum evrec_cause *cause)
{
	enum share_result result = SHARE_OWN;
	bool wakes = false;

	share_lock(s);
	if (share_role(s) != SHARE_OWNER) {
		wakes = ledger_is_empty(s->ledger);
		buf_clear(&s->scratch);
		frame_event_put(&s->scratch, event, keys, keys == NULL ? 0 : s->sinks);
		result = SHARE_DROPPED;
		if (s->scratch.failed) {
			*cause = EVREC_CAUSE_MEMORY;
			ledger_drop(s->ledger, *cause);
		} else if (ledger_add(s->ledger, buf_str(&s->scratch), at, cause)) {
			result = SHARE_KEPT;
		}
	}
	share_unlock(s);
	if (wakes) {
		share_wake(s);
	}
	return result;
}

void share_settled(struct share *s, uint64_t source, uint64_t node, size_t sink, unsigned end, uint32_t n)
{
	const struct frame_ack ack = { (uint32_t)node, n, (uint8_t)sink, (uint8_t)end, 0 };
	struct peer *peer;

	share_lock(s);
	for (peer = s->peers; peer != NULL && peer->number != source; peer = peer->next) {
	}
	if (peer != NULL) {
		peer_settled(s, peer, &ack);
	}
	share_unlock(s);
	if (peer != NULL && !s->options.holds_acks) {
		share_wake(s);
	}
}

bool share_has_source(struct share *s, uint64_t source)
{
	const struct peer *peer;

	share_lock(s);
	for (peer = s->peers; peer != NULL && peer->number != source; peer = peer->next) {
	}
	share_unlock(s);
	return peer != NULL && !peer->failed;
}

bool share_mark(struct share *s)
{
	bool holds = false;

	share_lock(s);
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		peer->marked = peer->held.len;
		holds = holds || peer->marked != 0;
	}
	share_unlock(s);
	return holds;
}

void share_release(struct share *s)
{
	share_lock(s);
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		peer_release(peer);
	}
	share_unlock(s);
	share_wake(s);
}

void share_close(struct share *s)
{
	atomic_store(&s->closing, true);
	share_flush(s);
}

void share_flush(struct share *s)
{
	share_lock(s);
	s->flushes = share_role(s) != SHARE_OWNER;
	share_unlock(s);
	share_wake(s);
}

bool share_is_settled(struct share *s)
{
	bool settled;

	share_lock(s);
	settled = ledger_is_empty(s->ledger) && !s->records_own;
	share_unlock(s);
	return settled;
}

void share_count(struct share *s, size_t sink, struct ledger_counts *counts)
{
	share_lock(s);
	ledger_count(s->ledger, sink, counts);
	share_unlock(s);
}

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
	int fd = -1;

	switch (endpoint_connect(&s->endpoint, &fd, &err)) {
	case ENDPOINT_OK:
		worker_begin(s, fd);
		break;
	case ENDPOINT_FAILED:
		share_tell(s, err.message, "share");
		s->next_try = now + RETRY_FAILED;
		break;
	default:
		s->next_try = now + (now < s->bind_from || s->closing_since != 0 ? RETRY_HEIR : RETRY);
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

static enum endpoint_result bind_endpoint(struct share *s, evrec_error *err)
{
	const enum endpoint_result result = endpoint_bind(&s->endpoint, err);

	if (result == ENDPOINT_OK && s->was_worker) {
		s->bound_at = clock_monotonic(evrec_clock_real());
	}
	return result;
}

static void elect(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	enum endpoint_result result = may_bind(s, now) ? bind_endpoint(s, &err) : ENDPOINT_IN_USE;

	if (result == ENDPOINT_OK) {
		s->told[0] = '\0';
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

static void wait_for_work(struct share *s, int64_t timeout)
{
	const short more = s->link.line.out.len != 0 ? POLLOUT : 0;
	size_t n = 3;

	if (!reserve_polled(s)) {
		return;
	}
	poll_one(s, 0, s->wake_fd, POLLIN);
	poll_one(s, 1, s->endpoint.fd, POLLIN);
	poll_one(s, 2, s->link.line.fd, (short)(POLLIN | more));
	for (const struct peer *p = s->peers; p != NULL; p = p->next) {
		const short in = peer_is_full(s, p) ? 0 : POLLIN;

		poll_one(s, n++, p->line.fd, (short)(in | (p->line.out.len != 0 ? POLLOUT : 0)));
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
	const bool looks = s->endpoint.fd < 0 && s->link.phase == LINK_NONE;

	if (s->wake_fd < 0) {
		/* Without one, a step waits no longer than it is told to. */
		s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	if (looks && s->next_try > now && timeout > s->next_try - now) {
		timeout = s->next_try - now;
	}
	if (timeout > 0 && (!looks || s->next_try > now)) {
		const int64_t before = clock_monotonic(evrec_clock_real());

		wait_for_work(s, timeout);
		now += clock_monotonic(evrec_clock_real()) - before;
	}
	take_wake(s);
	if (looks && s->next_try <= now) {
		elect(s, now);
	}
	if (s->endpoint.fd >= 0) {
		if (share_role(s) == SHARE_OWNER || owner_begin(s)) {
			owner_step(s);
		}
	} else if (s->link.phase != LINK_NONE) {
		worker_step(s, now);
	}
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

void share_end(struct share *s, int64_t timeout)
{
	evrec_error err = { 0 };

	if (s->link.phase != LINK_NONE) {
		worker_leave(s);
	}
	if (s->endpoint.fd >= 0 || (s->is_heir && bind_endpoint(s, &err) == ENDPOINT_OK)) {
		owner_end(s, timeout);
	}
	s->next_try = INT64_MAX;
	share_lock(s);
	ledger_disconnect(s->ledger);
	share_unlock(s);
	while (drop_next(s)) {
	}
}
