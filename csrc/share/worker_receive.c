#include "share/share_inner.h"

#include <stdio.h>

#define RETRY_REFUSED EVREC_SECOND

static void acknowledge(struct share *s, const struct frame_ack *ack)
{
	struct frame_event event;
	evrec_event *copy = NULL;
	evrec_str bytes;
	uint32_t n;

	share_lock(s);
	n = ledger_ack(s->ledger, ack, &bytes);
	if (n != 0 && ack->end != FRAME_FORWARDED && frame_event_read(bytes, &event, NULL) == 0) {
		copy = evrec_event_new(&event.fields);
		frame_event_destroy(&event);
	}
	share_unlock(s);
	if (copy != NULL) {
		s->ops->lost(s->ctx, evrec_event_fields(copy), ack->sink, ack->end, n);
		evrec_event_release(copy);
	}
}

/* False: no memory, or too much. */
static bool take_acks(struct share *s, const struct frame *f)
{
	if (f->flags == FRAME_OF_BATCH) {
		buf_put_str(&s->link.acks, f->records);
		return !s->link.acks.failed && s->link.acks.len <= FRAME_BATCH_MAX;
	}
	for (size_t i = 0; i < frame_acks_len(f); i++) {
		const struct frame_ack ack = frame_ack_at(f, i);

		acknowledge(s, &ack);
	}
	return true;
}

static void end_batch(struct share *s, uint64_t batch)
{
	const struct frame all = { .type = FRAME_ACK, .records = buf_str(&s->link.acks) };

	(void)take_acks(s, &all);
	buf_clear(&s->link.acks);
	s->got_batch = batch;
}

static void be_refused(struct share *s, const struct frame *f, int64_t now)
{
	char message[256];

	(void)snprintf(message, sizeof(message), "the owner refuses this process: %.*s", (int)f->text.len,
	               f->text.len == 0 ? "" : f->text.data);
	s->refused = true;
	worker_end(s, now + RETRY_REFUSED);
	share_tell(s, message, "share_refused");
}

static int take_state(struct share *s, const struct frame *f, evrec_error *err)
{
	struct frame_parts *parts = &s->link.line.parts;
	bool complete = false;
	const int code = frame_collect(parts, &f->part, FRAME_STATE_MAX, &complete, err);

	if (code == 0 && complete) {
		buf_free(&s->state[f->sink]);
		s->state[f->sink] = parts->whole;
		*parts = (struct frame_parts){ .total = 0 };
	}
	return code;
}

static void take_goodbye(struct share *s, const struct frame *f, int64_t now)
{
	bool again;

	share_lock(s);
	again = ledger_has_again(s->ledger);
	share_unlock(s);
	/* An owner that has acknowledged all may not have read what was sent to an earlier one that has not. */
	s->link.unsure = (s->link.unsure && again) || (f->flags & FRAME_UNSURE) != 0;
	s->is_heir = (f->flags & FRAME_HEIR) != 0;
	s->bind_from = s->is_heir ? now : now + HEIR_FIRST;
	worker_end(s, now);
	if (s->endpoint.fd >= 0) {
		share_has_bound(s);
	}
}

/* False: the connection has ended, or must be ended. */
static bool take_frame(struct share *s, const struct frame *f, int64_t now, evrec_error *err)
{
	const bool ready = s->link.phase == LINK_READY;

	if (f->type == FRAME_HELLO && !ready) {
		s->link.phase = LINK_READY;
		s->refused = false;
		s->was_worker = true;
		s->is_heir = false;
		s->closing_since = 0;
		s->told[0] = '\0';
		/* The state of an owner that has ended since: the present owner goes on without it. */
		share_forget_state(s);
		return true;
	}
	if (f->type == FRAME_REFUSE) {
		be_refused(s, f, now);
		return false;
	}
	if (f->type == FRAME_ACK && ready) {
		return take_acks(s, f);
	}
	if (f->type == FRAME_BATCH && ready) {
		end_batch(s, f->batch);
		return true;
	}
	if (f->type == FRAME_LEFT && ready && s->link.leave == LEAVE_ASKED) {
		s->link.leave = LEAVE_RECEIVED;
		return true;
	}
	if (f->type == FRAME_PONG && ready) {
		return true;
	}
	if (f->type == FRAME_ERROR && ready) {
		s->ops->trouble(s->ctx, f->text, f->problem, f->sink_name);
		return true;
	}
	if (f->type == FRAME_STATE && ready) {
		return take_state(s, f, err) == 0;
	}
	if (f->type == FRAME_ANSWER && ready) {
		return ask_take(s, f, err) == 0;
	}
	if (f->type == FRAME_OFFER && ready) {
		s->link.accepts = atomic_load(&s->may_own) && s->link.leave == LEAVE_NOT && !s->declines;
		s->link.accepted = s->link.accepted || s->link.accepts;
		return true;
	}
	if (f->type == FRAME_BYE) {
		take_goodbye(s, f, now);
		return false;
	}
	(void)error_set(err, EVREC_EINVALID, "the peer sent a frame out of its turn");
	return false;
}

void worker_lose(struct share *s, int64_t now, const evrec_error *err)
{
	const int64_t wait = s->link.phase == LINK_GREETING ? RETRY_GREETING : 0;

	if (s->link.phase == LINK_NONE) {
		return;
	}
	s->link.unsure = s->link.unsure || s->link.phase == LINK_READY;
	worker_end(s, now + (err->message[0] == '\0' ? wait : RETRY_REFUSED));
	if (err->message[0] != '\0') {
		share_tell(s, err->message, "share");
	}
}

void worker_receive(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	struct frame f;

	for (size_t i = 0; i < FRAMES_A_STEP; i++) {
		const int got = line_receive(s, &s->link.line, &f, &err);

		if (got == 0) {
			return;
		}
		if (got > 0) {
			silence_is_over(s, now);
		}
		if (got < 0 || !take_frame(s, &f, now, &err)) {
			worker_lose(s, now, &err);
			return;
		}
	}
}

void worker_receive_rest(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	struct frame f;

	while (s->link.phase != LINK_NONE && line_receive(s, &s->link.line, &f, &err) > 0 &&
	       take_frame(s, &f, now, &err)) {
	}
}
