/* The end of an owner in order: acknowledgements, the state, and the bound socket go to the workers. */
#include "share/share_inner.h"

#include "base/clock.h"

#include <stdio.h>

#define AWAIT_MS 10           /* between two looks for a worker, or for its answer */
#define ANSWER_MAX (200 * MS) /* for a worker's answer to the offer */

static int64_t mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

/* Waits until there is room for a frame. False: the deadline has passed. */
static bool wait_for_room(const struct peer *peer, int64_t deadline)
{
	struct pollfd polled = { .fd = peer->line.fd, .events = POLLOUT };
	const int64_t left = deadline - mono();

	return left > 0 && poll(&polled, 1, (int)((left + MS - 1) / MS)) > 0;
}

/* Sends all acknowledgements. */
static void send_acks(struct share *s, struct peer *peer, int64_t deadline)
{
	while (!peer_send(s, peer) && !peer->dead) {
		peer->dead = !wait_for_room(peer, deadline);
	}
}

/* Sends the frame in line.out. */
static void send_frame(struct peer *peer, int64_t deadline)
{
	while (!peer->dead && !line_send(&peer->line, &peer->dead)) {
		peer->dead = peer->dead || !wait_for_room(peer, deadline);
	}
}

static void send_state(struct peer *heir, size_t sink, evrec_str state, int64_t deadline)
{
	size_t next = 0;

	while (!heir->dead && next < state.len) {
		heir->dead = !frame_state(&heir->line.out, (uint32_t)sink, state, next, &next);
		send_frame(heir, deadline);
	}
}

/* Whether the state of a sink can be handed over; if not, reports it. */
static bool can_hand_over(struct share *s, size_t sink, const struct buf *state)
{
	char message[128];

	if (!state->failed && state->len <= FRAME_STATE_MAX) {
		return true;
	}
	(void)snprintf(message, sizeof(message),
	               "the next owner gets no counts of sink %zu: they take more than 64 MiB, or there is no memory",
	               sink + 1);
	share_tell(s, message, "share");
	return false;
}

/* Sends the state to the heir. False: the peer got none of it, or only a part, and is no heir. */
static bool send_states(struct share *s, struct peer *heir, int64_t deadline)
{
	struct buf state = { 0 };

	for (size_t i = 0; i < s->sinks && !heir->dead; i++) {
		buf_clear(&state);
		if (s->state[i].len != 0) {
			/* The state of the last owner, which was not taken over yet. */
			send_state(heir, i, buf_str(&s->state[i]), deadline);
		} else if (s->ops->save_state(s->ctx, i, &state) && can_hand_over(s, i, &state)) {
			send_state(heir, i, buf_str(&state), deadline);
		}
	}
	buf_free(&state);
	return !heir->dead;
}

/* Greets the processes that have connected. False: there is no worker. */
static bool greet_all(struct share *s)
{
	bool any = false;

	owner_accept(s, mono());
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		if (!peer->greeted) {
			peer_receive(s, peer, WORK_A_PEER);
		}
		any = any || (peer->greeted && !peer->dead);
	}
	return any;
}

/* Waits for the workers of the last owner to connect. */
static void await_workers(struct share *s, int64_t deadline)
{
	const int64_t last = s->bound_at == INT64_MIN ? INT64_MIN : s->bound_at + HEIR_FIRST;
	struct pollfd polled = { .fd = s->endpoint.fd, .events = POLLIN };

	while (!greet_all(s) && mono() < last && mono() < deadline) {
		(void)poll(&polled, 1, AWAIT_MS);
	}
}

/* ---- the heir ---- */

void owner_offer(struct peer *peer)
{
	if (peer->greeted && !peer->offered) {
		peer->offered = peer->offers = true;
	}
}

/* Discards all other frames: the worker will send their events to the next owner. */
static void read_answer(struct share *s, struct peer *peer)
{
	evrec_error err = { 0 };
	struct frame f;
	int got = 0;

	while (!peer->dead && (got = line_receive(s, &peer->line, &f, &err)) > 0) {
		peer->accepts = peer->accepts || f.type == FRAME_ACCEPT;
		peer->closing = peer->closing || (f.type == FRAME_FLUSH && f.flags == FRAME_CLOSING);
	}
	peer->dead = peer->dead || got < 0;
}

/*
 * A worker that has answered, preferably one that is not about to end. NULL: none. Clears *all if a better one may
 * still answer.
 */
static struct peer *find_answer(struct share *s, bool *all)
{
	struct peer *found = NULL;

	*all = true;
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		read_answer(s, peer);
		if (!peer->dead && peer->accepts && (found == NULL || found->closing)) {
			found = peer;
		}
		*all = *all && (peer->dead || peer->accepts || (peer->closing && found != NULL));
	}
	*all = *all || (found != NULL && !found->closing);
	return found;
}

/* NULL: no worker answers in time. */
static struct peer *await_answer(struct share *s, int64_t deadline)
{
	const int64_t last = mono() + ANSWER_MAX < deadline ? mono() + ANSWER_MAX : deadline;
	bool all;
	struct peer *found = find_answer(s, &all);

	while (!all && mono() < last) {
		(void)poll(NULL, 0, AWAIT_MS);
		found = find_answer(s, &all);
	}
	return found;
}

/* Makes the last frame. False: the peer is dead. */
static bool make_goodbye(struct share *s, struct peer *peer, uint16_t flags)
{
	share_lock(s);
	flags |= peer->held.len != 0 ? FRAME_UNSURE : 0;
	share_unlock(s);
	peer->dead = peer->dead || !frame_begin(&peer->line.out, FRAME_BYE, flags);
	return !peer->dead;
}

/* Sends the frame in line.out, and the bound socket with it. False: the peer is dead. */
static bool send_bound(struct share *s, struct peer *heir, int64_t deadline)
{
	while (!heir->dead && !line_give(&heir->line, &s->endpoint, &heir->dead)) {
		heir->dead = heir->dead || !wait_for_room(heir, deadline);
	}
	return !heir->dead;
}

/*
 * The socket goes with the state, so the name is never free, and no process that has just begun becomes the owner without
 * the state. The heir has accepted, as a hanging process would keep the name. False: there is no heir.
 */
static bool hand_over(struct share *s, int64_t deadline)
{
	struct peer *heir;

	while ((heir = await_answer(s, deadline)) != NULL) {
		if (send_states(s, heir, deadline) && make_goodbye(s, heir, FRAME_HEIR) &&
		    send_bound(s, heir, deadline)) {
			endpoint_leave(&s->endpoint);
			heir->dead = true;
			return true;
		}
	}
	return false;
}

/* Leaves the state to a worker, which may read it later. NULL: no worker is left. */
static struct peer *leave_state(struct share *s, bool closing, int64_t deadline)
{
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		if (!peer->dead && peer->closing == closing && send_states(s, peer, deadline)) {
			return peer;
		}
	}
	return NULL;
}

void owner_end(struct share *s, int64_t deadline)
{
	struct peer *peer, *heir = NULL;

	await_workers(s, deadline);
	for (peer = s->peers; peer != NULL; peer = peer->next) {
		peer->dead = peer->dead || !peer->greeted;
		owner_offer(peer);
		send_acks(s, peer, deadline);
	}
	if (!hand_over(s, deadline)) {
		heir = leave_state(s, false, deadline);
		heir = heir != NULL ? heir : leave_state(s, true, deadline);
	}
	/* Not earlier: another process could become the owner before the heir has the state. */
	endpoint_close(&s->endpoint);
	for (peer = s->peers; peer != NULL; peer = peer->next) {
		if (make_goodbye(s, peer, peer == heir ? FRAME_HEIR : 0)) {
			send_frame(peer, deadline);
		}
		peer->dead = true;
	}
	owner_remove_dead(s);
	share_lock(s);
	atomic_store(&s->role, SHARE_UNKNOWN);
	share_unlock(s);
}
