#include "share/share_inner.h"

#include "base/clock.h"

#include <stdio.h>

#define ACCEPT_AGAIN EVREC_SECOND        /* after accept() has failed, for want of descriptors */
#define REFUSAL_EACH (10 * EVREC_SECOND) /* between two reports of refused users */
#define SIGN_EACH EVREC_SECOND           /* between two signs of life of an owner that ends */

/* ---- becoming the owner ---- */

/* Gives one event of the ledger to the pipelines. False: there is none, or there is no memory. */
static bool record_own(struct share *s)
{
	struct ledger_item item;
	struct frame_event event;
	bool ok;

	share_lock(s);
	ok = ledger_take(s->ledger, &item, &event);
	s->records_own = ok;
	share_unlock(s);
	if (!ok) {
		return false;
	}
	s->ops->record(s->ctx, &(struct share_event){
				       .event = &event,
				       .process = share_process(s->instance),
				       .name = item.known ? (evrec_str){ NULL, 0 } : item.name,
				       .flags = (uint16_t)(item.flags | (s->link.unsure ? FRAME_UNSURE : 0)),
				       .n = item.times.n,
				       .first = item.times.first,
				       .last = item.times.last,
				       .batch = s->got_batch,
			       });
	frame_event_destroy(&event);
	share_lock(s);
	s->records_own = false;
	share_unlock(s);
	return true;
}

bool owner_begin(struct share *s)
{
	bool empty;

	if (!s->ops->begin(s->ctx, s->alone)) {
		return false;
	}
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		if (s->state[i].len != 0) {
			s->ops->load_state(s->ctx, i, buf_str(&s->state[i]));
		}
		buf_free(&s->state[i]);
	}
	s->ops->connected(s->ctx, 0, share_process(s->instance), s->got_batch);
	while (record_own(s)) {
	}
	share_lock(s);
	empty = ledger_is_empty(s->ledger);
	if (empty) {
		s->changed = false;
		atomic_store(&s->role, SHARE_OWNER);
	}
	share_unlock(s);
	return empty;
}

/* ---- connections ---- */

static void add_peer(struct share *s, struct endpoint_copied *copied, int *fd)
{
	struct peer *peer = s->peers_len < PEERS_MAX ? peer_new(s->last_number + 1) : NULL;

	if (peer == NULL) {
		endpoint_copied_end(copied, fd);
		return;
	}
	endpoint_copied_move(copied, fd, &peer->line.copied, &peer->line.fd);
	line_begin(&peer->line);
	s->last_number++;
	share_lock(s);
	peer->next = s->peers;
	s->peers = peer;
	share_unlock(s);
	s->peers_len++;
}

/* Sends the refusal to the process, and reports a foreign user, unless it was the last one reported. */
static void refuse_user(struct share *s, int fd, const struct endpoint_peer *peer, const evrec_error *err, int64_t now)
{
	struct buf out = { 0 };
	char text[64];

	(void)snprintf(text, sizeof(text), "user %u is not one of its share_users", peer->user);
	if (frame_refuse(&out, (evrec_str){ NULL, 0 }, str_from(text))) {
		(void)endpoint_send(fd, out.data, out.len);
	}
	buf_free(&out);
	if (peer->user != s->refused_user && s->next_refusal <= now) {
		s->refused_user = peer->user;
		s->next_refusal = now + REFUSAL_EACH;
		s->ops->error(s->ctx, err->message, "share_refused");
	}
}

void owner_accept(struct share *s, int64_t now)
{
	struct endpoint_copied copied;
	struct endpoint_peer peer;
	evrec_error err = { 0 };
	int fd;

	for (size_t i = 0; i < FRAMES_A_STEP && s->next_accept <= now && !s->alone; i++) {
		const bool came = endpoint_accept(&s->endpoint, &copied, &fd, &peer, &err);

		if (came && err.code == 0) {
			add_peer(s, &copied, &fd);
		} else if (came) {
			refuse_user(s, fd, &peer, &err, now);
			endpoint_copied_end(&copied, &fd);
		} else if (err.code != 0) {
			/* The connection still waits, so poll would report the socket again at once. */
			s->next_accept = now + ACCEPT_AGAIN;
			share_tell(s, err.message, "share");
		} else {
			s->told[0] = '\0';
			return;
		}
	}
}

void owner_remove_dead(struct share *s)
{
	struct peer **at = &s->peers;

	while (*at != NULL) {
		struct peer *peer = *at;

		if (peer->dead) {
			share_lock(s);
			*at = peer->next;
			share_unlock(s);
			peer_free(peer);
			s->peers_len--;
		} else {
			at = &peer->next;
		}
	}
}

/* If the options have changed, ends the connections, so that workers send a new hello. */
static void check_changed(struct share *s)
{
	bool changed;

	share_lock(s);
	changed = s->changed;
	s->changed = false;
	share_unlock(s);
	for (struct peer *peer = s->peers; changed && peer != NULL; peer = peer->next) {
		peer->dead = true;
	}
}

/* Sends unasked pongs, and looks for an heir. */
static void begin_leaving(struct share *s, int64_t now)
{
	const bool signs = s->next_sign <= now;

	s->next_sign = signs ? now + SIGN_EACH : s->next_sign;
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		peer->signs = peer->signs || (signs && peer->greeted);
		owner_offer(peer);
		(void)peer_send(s, peer);
	}
}

void share_send_batch(struct share *s)
{
	for (struct peer *peer = s->peers; peer != NULL; peer = peer->next) {
		(void)peer_send(s, peer);
	}
}

void owner_step(struct share *s, int64_t now)
{
	size_t work;

	check_changed(s);
	owner_accept(s, now);
	/* The batch comes first: a worker with a full ledger waits for it. */
	share_send_batch(s);
	work = WORK_A_STEP / (s->peers_len + 1);
	for (struct peer *peer = s->peers; peer != NULL && !atomic_load(&s->leaves); peer = peer->next) {
		peer_receive(s, peer, work > WORK_A_PEER ? work : WORK_A_PEER);
		(void)peer_send(s, peer);
	}
	if (atomic_load(&s->leaves)) {
		begin_leaving(s, now);
	}
	owner_remove_dead(s);
}

void owner_free(struct share *s)
{
	while (s->peers != NULL) {
		struct peer *peer = s->peers;

		s->peers = peer->next;
		peer_free(peer);
	}
}
