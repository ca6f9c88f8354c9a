/* An owner sends to one worker: acknowledgements, errors, signs of life, and offers. */
#include "share/share_inner.h"

/* Bytes of waiting acknowledgements from which on no more events are read; the bound of held ones is larger. */
#define ACKS_FULL ((size_t)64 * 1024)
#define HELD_FULL ((size_t)1024 * 1024)
#define ERRORS_FULL ((size_t)16 * 1024) /* bytes of errors that wait: no more are added */

/* Adds to the last record if only the number differs. */
static void add_ack(struct buf *acks, size_t from, const struct frame_ack *ack)
{
	struct frame_ack last;

	if (acks->len >= from + sizeof(last)) {
		memcpy(&last, acks->data + acks->len - sizeof(last), sizeof(last));
		if (last.id == ack->id && last.sink == ack->sink && last.end == ack->end &&
		    last.n <= UINT32_MAX - ack->n) {
			last.n += ack->n;
			memcpy(acks->data + acks->len - sizeof(last), &last, sizeof(last));
			return;
		}
	}
	buf_put(acks, ack, sizeof(*ack));
}

void peer_settled(const struct share *s, struct peer *peer, const struct frame_ack *ack)
{
	peer->waiting -= ack->n < peer->waiting ? ack->n : peer->waiting;
	if (s->options.holds_acks) {
		add_ack(&peer->held, peer->marked, ack);
	} else {
		add_ack(&peer->acks, 0, ack);
	}
	peer->failed = peer->failed || peer->acks.failed || peer->held.failed;
}

/* Takes the first bytes out of a buffer. */
static void cut_head(struct buf *b, size_t len)
{
	b->len -= len;
	if (b->len != 0) {
		memmove(b->data, b->data + len, b->len);
	}
}

void peer_release(struct peer *peer, uint64_t batch)
{
	if (peer->marked == 0) {
		return;
	}
	peer->batch = batch;
	buf_put(&peer->acks, peer->held.data, peer->marked);
	peer->failed = peer->failed || peer->acks.failed;
	cut_head(&peer->held, peer->marked);
	peer->marked = 0;
}

bool peer_is_full(struct share *s, const struct peer *peer)
{
	bool full;

	share_lock(s);
	full = peer->answer.sends || peer->acks.len > ACKS_FULL || peer->held.len > HELD_FULL;
	share_unlock(s);
	return full;
}

bool peer_report(struct peer *peer, evrec_str problem, evrec_str sink_name, evrec_str text)
{
	const bool concerned = peer->waiting != 0 || peer->held.len != 0 || peer->acks.len != 0;
	struct buf frame = { 0 };
	bool ok;

	/* A worker that reads nothing misses errors: the owner's own on_error gets all. */
	if (!concerned || peer->errors.len > ERRORS_FULL || !frame_error(&frame, problem, sink_name, text)) {
		buf_free(&frame);
		return false;
	}
	ok = buf_reserve(&peer->errors, sizeof(frame.len) + frame.len);
	buf_put(&peer->errors, &frame.len, sizeof(frame.len));
	buf_put_str(&peer->errors, buf_str(&frame));
	peer->errors.failed = false;
	buf_free(&frame);
	return ok;
}

/* Puts the next error's frame in line.out. */
static void take_error(struct peer *peer)
{
	struct buf *out = &peer->line.out;
	size_t len;

	memcpy(&len, peer->errors.data, sizeof(len));
	buf_clear(out);
	buf_put(out, peer->errors.data + sizeof(len), len);
	if (out->failed) {
		buf_clear(out);
	} else {
		cut_head(&peer->errors, sizeof(len) + len);
	}
}

static void make_acks(struct share *s, struct peer *peer)
{
	struct buf *out = &peer->line.out;
	size_t len;

	share_lock(s);
	if (peer->errors.len != 0) {
		take_error(peer);
		share_unlock(s);
		return;
	}
	len = peer->acks.len;
	if (len > FRAME_MAX / 2) {
		len = FRAME_MAX / 2 / sizeof(struct frame_ack) * sizeof(struct frame_ack);
	}
	if (len != 0 && frame_begin(out, FRAME_ACK, peer->batch != 0 ? FRAME_OF_BATCH : 0)) {
		buf_put(out, peer->acks.data, len);
		if (out->failed) {
			buf_clear(out);
		} else {
			cut_head(&peer->acks, len);
		}
	} else if (len == 0 && peer->batch != 0) {
		peer->batch = frame_batch(out, peer->batch) ? 0 : peer->batch;
	} else if (len == 0 && (peer->pinged || peer->signs)) {
		peer->pinged = peer->signs = !frame_begin(out, FRAME_PONG, 0);
	} else if (len == 0 && peer->tells_left) {
		peer->tells_left = !frame_begin(out, FRAME_LEFT, 0);
	} else if (len == 0 && peer->offers) {
		peer->offers = !frame_begin(out, FRAME_OFFER, 0);
	}
	peer->dead = peer->dead || peer->failed;
	share_unlock(s);
}

bool peer_send(struct share *s, struct peer *peer)
{
	while (!peer->dead && line_send(&peer->line, &peer->dead)) {
		make_acks(s, peer);
		if (peer->line.out.len == 0) {
			answer_put(peer);
		}
		if (peer->line.out.len == 0) {
			return true;
		}
	}
	return false;
}
