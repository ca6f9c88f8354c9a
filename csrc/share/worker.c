#include "share/share_inner.h"

#include "base/clock.h"
#include "share/bytes.h"

#include <sys/socket.h>

#define NO_MORE (INT64_MAX / 2) /* in place of the time of a step; durations are added to it */

void worker_begin(struct share *s, int64_t now)
{
	struct link *link = &s->link;
	bool ok;

	silence_begin(s, link->line.fd);
	line_begin(&link->line);
	buf_clear(&link->whole);
	buf_clear(&link->acks);
	link->tells_batch = true;
	link->phase = LINK_GREETING;
	link->leave = LEAVE_NOT;
	link->accepts = link->accepted = false;
	share_lock(s);
	ok = frame_hello(&link->line.out, s->instance, s->same, s->same_len);
	s->changed = false;
	atomic_store(&s->role, SHARE_WORKER);
	share_unlock(s);
	if (!ok) {
		worker_end(s, now + RETRY_GREETING);
	}
}

void worker_end(struct share *s, int64_t next_try)
{
	line_close(&s->link.line);
	buf_free(&s->link.whole);
	buf_free(&s->link.acks);
	s->link.phase = LINK_NONE;
	s->next_try = next_try;
	silence_end(s);
	share_lock(s);
	ledger_disconnect(s->ledger);
	ask_disconnect(s);
	atomic_store(&s->role, SHARE_UNKNOWN);
	share_unlock(s);
}

static uint16_t flags_of(const struct link *link, const struct ledger_item *item)
{
	return item->flags | ((item->flags & FRAME_RESENT) != 0 && link->unsure ? FRAME_UNSURE : 0);
}

/* The name, and the event's bytes. False: no memory. */
static bool begin_event(struct link *link, const struct ledger_item *item)
{
	buf_clear(&link->whole);
	bytes_put_str(&link->whole, item->name);
	buf_put_str(&link->whole, item->bytes);
	if (link->whole.failed) {
		buf_clear(&link->whole);
		return false;
	}
	link->sent = 0;
	link->times = item->times;
	link->flags = flags_of(link, item);
	return true;
}

/* Occurrences, with the same flags, of events that the owner knows. */
static void put_more(const struct link *link, struct ledger *ledger, struct ledger_item *item, struct buf *out)
{
	const uint16_t flags = item->flags;
	bool next = frame_begin(out, FRAME_MORE, flags_of(link, item));

	while (next && item->known && item->flags == flags && frame_has_room(out)) {
		frame_add_times(out, &item->times);
		if (out->failed) {
			break;
		}
		ledger_sent(ledger);
		next = ledger_next(ledger, item);
	}
	/* A record for which there was no memory was not taken from the ledger. */
	out->failed = false;
	if (out->len <= 8) {
		buf_clear(out);
	}
}

static void take_next(struct share *s)
{
	struct link *link = &s->link;
	struct ledger_item item;

	if (s->silence.asks) {
		s->silence.asks = !frame_begin(&link->line.out, FRAME_PING, 0);
		return;
	}
	share_lock(s);
	if (ledger_next(s->ledger, &item)) {
		if (item.known) {
			put_more(link, s->ledger, &item, &link->line.out);
		} else if (begin_event(link, &item)) {
			ledger_sent(s->ledger);
		}
	} else if (s->flushes) {
		s->flushes = !frame_begin(&link->line.out, FRAME_FLUSH, atomic_load(&s->closing) ? FRAME_CLOSING : 0);
	} else if (link->leave == LEAVE_SENDS) {
		link->leave = frame_begin(&link->line.out, FRAME_LEAVE, 0) ? LEAVE_ASKED : LEAVE_SENDS;
	} else {
		ask_put(s);
	}
	share_unlock(s);
}

/* Makes the next frame in line.out, if there is something to send. */
static void make_frame(struct share *s)
{
	struct link *link = &s->link;

	if (link->tells_batch) {
		/* Before all that the owner may have counted. */
		link->tells_batch = !frame_batch(&link->line.out, s->got_batch);
		return;
	}
	if (link->accepts) {
		link->accepts = !frame_begin(&link->line.out, FRAME_ACCEPT, 0);
		return;
	}
	if (link->whole.len == 0) {
		take_next(s);
	}
	if (link->whole.len == 0) {
		return;
	}
	if (!frame_event(&link->line.out, link->flags, &link->times, buf_str(&link->whole), link->sent, &link->sent)) {
		buf_clear(&link->line.out);
	} else if (link->sent == link->whole.len) {
		buf_clear(&link->whole);
	}
}

static void transmit(struct share *s, int64_t now)
{
	const evrec_error over = { 0 };
	bool dead = false;

	for (size_t i = 0; i < FRAMES_A_STEP && line_send(&s->link.line, &dead) && s->link.phase == LINK_READY; i++) {
		make_frame(s);
		if (s->link.line.out.len == 0) {
			return;
		}
	}
	if (dead) {
		/* The owner may have sent a bye since the step began. */
		worker_receive_rest(s, now);
		worker_lose(s, now, &over);
	}
}

static bool has_changed(struct share *s)
{
	bool changed;

	share_lock(s);
	changed = s->changed;
	share_unlock(s);
	return changed;
}

/* From here on the owner can send nothing unnoticed, such as a batch, or that this process is the heir. */
static void receive_last(struct share *s, int64_t now)
{
	(void)shutdown(s->link.line.fd, SHUT_RD);
	worker_receive_rest(s, now);
}

/* Ends the connection, so that the next one begins with the new options. */
static void begin_again(struct share *s, int64_t now)
{
	if (s->link.phase == LINK_READY) {
		receive_last(s, now);
	}
	if (s->link.phase != LINK_NONE) {
		s->link.unsure = true;
		worker_end(s, now);
	}
}

void worker_step(struct share *s, int64_t now)
{
	if (has_changed(s)) {
		begin_again(s, now);
		return;
	}
	/* Receives before sending, so that the last frames of an owner that has ended are not lost. */
	worker_receive(s, now);
	if (s->link.phase != LINK_NONE) {
		silence_step(s, now);
		transmit(s, now);
	}
}

/* The owner reads frames in order, so its answer to the last one covers all. An owner that ends, too, reads none. */
static void leave_to_owner(struct share *s, int64_t deadline)
{
	struct link *link = &s->link;
	int64_t left;

	link->leave = LEAVE_SENDS;
	while (link->phase == LINK_READY && link->leave != LEAVE_RECEIVED &&
	       (left = deadline - clock_monotonic(evrec_clock_real())) > 0) {
		struct pollfd polled = { .fd = link->line.fd, .events = POLLIN };

		transmit(s, NO_MORE);
		if (link->phase == LINK_READY) {
			polled.events = (short)(POLLIN | (link->line.out.len != 0 ? POLLOUT : 0));
			(void)poll(&polled, 1, (int)((left + MS - 1) / MS));
			worker_receive(s, NO_MORE);
		}
	}
	if (link->phase == LINK_READY && link->leave == LEAVE_RECEIVED) {
		share_lock(s);
		s->left_to_owner = ledger_leave_to_owner(s->ledger);
		share_unlock(s);
	}
}

void worker_leave(struct share *s, int64_t deadline)
{
	/* An owner that has not answered an earlier ping may hang. */
	if (s->link.phase == LINK_READY && s->silence.asked == NEVER && !share_is_settled(s)) {
		leave_to_owner(s, deadline);
	}
	if (s->link.phase == LINK_NONE) {
		return;
	}
	receive_last(s, NO_MORE);
	if (s->link.phase != LINK_NONE) {
		worker_end(s, NO_MORE);
	}
}
