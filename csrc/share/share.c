#define _GNU_SOURCE /* getrandom */

#include "share/share_inner.h"

#include "base/clock.h"
#include "event/event.h"

#include <sys/random.h>
#include <unistd.h>

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
		s->next_try = s->next_accept = s->next_refusal = s->silence.told = NEVER;
		s->refused_user = geteuid();
		silence_end(s);
		s->bind_from = s->bound_at = INT64_MIN;
		s->most_events = options->limits.max_events;
		make_instance(s);
		if (copy_users(s)) {
			s->endpoint.users = s->options.users;
			s->endpoint.users_len = s->options.users_len;
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
	buf_free(&s->link.acks);
	close_copy(s->wake_fd);
	share_forget_state(s);
	ledger_free(s->ledger);
	ask_free(&s->ask);
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

void share_set_full(struct share *s, enum evrec_overflow full)
{
	share_lock(s);
	ledger_set_full(s->ledger, full);
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

void share_leave(struct share *s)
{
	if (!atomic_exchange(&s->leaves, true)) {
		share_wake(s);
	}
}

bool share_has_workers(struct share *s)
{
	bool has;

	share_lock(s);
	has = s->peers != NULL;
	share_unlock(s);
	return has;
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

evrec_event *share_next_dropped(struct share *s, uint32_t *n)
{
	struct frame_event event;
	evrec_event *copy = NULL;
	evrec_str bytes;

	share_lock(s);
	if (!ledger_next_dropped(s->ledger, &bytes, n)) {
		*n = 0;
	} else if (frame_event_read(bytes, &event, NULL) == 0) {
		copy = evrec_event_new(&event.fields);
		frame_event_destroy(&event);
	}
	share_unlock(s);
	return copy;
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
	bool has;

	share_lock(s);
	for (peer = s->peers; peer != NULL && peer->number != source; peer = peer->next) {
	}
	has = peer != NULL && !peer->failed && !peer->left;
	share_unlock(s);
	return has;
}

uint64_t share_begin_batch(struct share *s)
{
	s->batch += s->batch == 0 ? share_process(s->instance) : 1;
	s->batch += s->batch == 0;
	return s->batch;
}

static bool has_sent_batch(const struct peer *peer)
{
	return peer->batch == 0 && peer->acks.len == 0 && peer->line.out.len == 0;
}

bool share_has_sent_batch(struct share *s, uint64_t source)
{
	const struct peer *peer;
	bool sent;

	share_lock(s);
	for (peer = s->peers; peer != NULL && peer->number != source; peer = peer->next) {
	}
	sent = peer != NULL && has_sent_batch(peer);
	share_unlock(s);
	return sent;
}

bool share_mark(struct share *s)
{
	bool holds = false;

	share_lock(s);
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		peer->marked = has_sent_batch(peer) ? peer->held.len : peer->marked;
		holds = holds || peer->marked != 0;
	}
	share_unlock(s);
	return holds;
}

void share_release(struct share *s)
{
	share_lock(s);
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		peer_release(peer, s->batch);
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

uint64_t share_left_to_owner(struct share *s)
{
	uint64_t n;

	share_lock(s);
	n = s->left_to_owner;
	share_unlock(s);
	return n;
}

void share_report(struct share *s, evrec_str problem, evrec_str sink_name, evrec_str text)
{
	bool any = false;

	share_lock(s);
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		any = peer_report(peer, problem, sink_name, text) || any;
	}
	share_unlock(s);
	if (any) {
		share_wake(s);
	}
}

void share_count(struct share *s, size_t sink, struct ledger_counts *counts)
{
	share_lock(s);
	ledger_count(s->ledger, sink, counts);
	share_unlock(s);
}
