#include "share/share_inner.h"

#include "event/event.h"
#include "share/bytes.h"

#include <stdio.h>

#define NODES_MIN 16

struct peer *peer_new(uint64_t number)
{
	struct peer *peer = mem_zalloc(sizeof(*peer));

	if (peer != NULL) {
		peer->number = number;
		peer->line.fd = -1;
	}
	return peer;
}

static void forget(struct peer *peer, uint32_t id)
{
	if (id < peer->nodes_len && peer->nodes[id] != NULL) {
		frame_event_destroy(&peer->nodes[id]->event);
		mem_free(peer->nodes[id]);
		peer->nodes[id] = NULL;
	}
}

void peer_free(struct peer *peer)
{
	line_close(&peer->line);
	for (uint32_t i = 0; i < peer->nodes_len; i++) {
		forget(peer, i);
	}
	mem_free(peer->nodes);
	buf_free(&peer->answer.whole);
	buf_free(&peer->errors);
	buf_free(&peer->acks);
	buf_free(&peer->held);
	buf_free(&peer->rest);
	mem_free(peer);
}

/* ---- what the worker has sent ---- */

static int broken(evrec_error *err, const char *reason)
{
	return error_set(err, EVREC_EINVALID, "the peer sent %s", reason);
}

/* Records as many as this step allows, but at least one. *times is then the rest, for later steps. */
static void record(struct share *s, struct peer *peer, struct frame_times *times, evrec_str name, uint16_t flags)
{
	const size_t most = peer->work > 0 ? peer->work : 1;
	const uint32_t n = times->n < most ? times->n : (uint32_t)most;
	const struct share_event event = {
		.source = peer->number,
		.node = times->id,
		.event = &peer->nodes[times->id]->event,
		.process = peer->process,
		.name = name,
		.flags = flags,
		.n = n,
		.first = times->first,
		.last = times->last,
		.batch = peer->had_batch,
	};

	share_lock(s);
	for (size_t i = 0; i < s->sinks; i++) {
		peer->waiting += (flags & FRAME_ENDED(i)) == 0 ? n : 0;
	}
	share_unlock(s);
	s->ops->record(s->ctx, &event);
	peer->work -= n < peer->work ? n : peer->work;
	times->n -= n;
	times->first = times->last;
}

static bool reserve_node(struct peer *peer, uint32_t id)
{
	size_t len = peer->nodes_len == 0 ? NODES_MIN : peer->nodes_len;
	struct peer_node **nodes;

	if (id < peer->nodes_len) {
		return true;
	}
	while (len <= id) {
		len *= 2;
	}
	nodes = mem_realloc(peer->nodes, len * sizeof(struct peer_node *));
	if (nodes == NULL) {
		return false;
	}
	memset(nodes + peer->nodes_len, 0, (len - peer->nodes_len) * sizeof(struct peer_node *));
	peer->nodes = nodes;
	peer->nodes_len = len;
	return true;
}

/* Replaces the event of the id. */
static int set_node(const struct share *s, struct peer *peer, uint32_t id, evrec_str bytes, evrec_error *err)
{
	struct peer_node *node;
	int code;

	forget(peer, id);
	node = reserve_node(peer, id) ? mem_alloc(sizeof(*node) + bytes.len) : NULL;
	if (node == NULL) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	memcpy(node->bytes, bytes.data, bytes.len);
	code = frame_event_read((evrec_str){ node->bytes, bytes.len }, &node->event, err);
	if (code == 0 && node->event.sinks != 0 && node->event.sinks != s->sinks) {
		frame_event_destroy(&node->event);
		code = broken(err, "keys of other sinks");
	}
	if (code != 0) {
		mem_free(node);
		return code;
	}
	peer->nodes[id] = node;
	return 0;
}

/* Whether an id is plausible: idle events of a worker have ids too, and its table of ids doubles. */
static bool is_id(const struct share *s, uint32_t id)
{
	return id < 2 * (s->most_events + 1024);
}

/* Occurrences that are to be recorded in later steps. */
struct rest {
	struct frame_times times;
	uint16_t flags;
};

static int put_rest(struct peer *peer, const struct frame_times *times, uint16_t flags, evrec_error *err)
{
	const struct rest rest = { .times = *times, .flags = flags };

	buf_put(&peer->rest, (const char *)&rest, sizeof(rest));
	return peer->rest.failed ? error_set(err, EVREC_ENOMEM, "no memory") : 0;
}

static int put_more(struct peer *peer, const struct frame *f, evrec_error *err)
{
	int code = 0;

	for (size_t i = 0; i < frame_times_len(f) && code == 0; i++) {
		const struct frame_times times = frame_times_at(f, i);

		code = put_rest(peer, &times, f->flags, err);
	}
	return code;
}

static int take_event(struct share *s, struct peer *peer, const struct frame *f, evrec_error *err)
{
	bool complete = false;
	struct bytes in;
	evrec_str name;
	int code;

	if (!is_id(s, f->times.id) || f->times.n > LEDGER_SEND_MAX) {
		return broken(err, "too many events");
	}
	code = frame_collect(&peer->line.parts, &f->part, FRAME_EVENT_MAX, &complete, err);
	if (code != 0 || !complete) {
		return code;
	}
	in = bytes_of(buf_str(&peer->line.parts.whole));
	name = bytes_str(&in);
	if (in.bad || !is_dns_subdomain(name)) {
		return broken(err, "an event without a name");
	}
	code = set_node(s, peer, f->times.id, (evrec_str){ in.at, in.left }, err);
	if (code == 0) {
		struct frame_times times = f->times;

		record(s, peer, &times, name, f->flags);
		if (times.n != 0) {
			code = put_rest(peer, &times, f->flags, err);
		}
	}
	/* Most events are small: a long one does not keep its memory. */
	buf_free(&peer->line.parts.whole);
	return code;
}

static int take_rest(struct share *s, struct peer *peer, evrec_error *err)
{
	while (peer->work > 0 && peer->rest_at < peer->rest.len) {
		char *at = peer->rest.data + peer->rest_at;
		struct frame_times *times;
		struct rest rest;

		memcpy(&rest, at, sizeof(rest));
		times = &rest.times;
		if (times->n == 0) {
			forget(peer, times->id);
			peer->work--;
		} else if (times->id >= peer->nodes_len || peer->nodes[times->id] == NULL ||
		           times->n > LEDGER_SEND_MAX) {
			return broken(err, "an unknown event");
		} else {
			record(s, peer, times, (evrec_str){ NULL, 0 }, rest.flags);
		}
		memcpy(at, &rest, sizeof(rest));
		peer->rest_at += times->n == 0 ? sizeof(rest) : 0;
	}
	if (peer->rest_at == peer->rest.len) {
		buf_free(&peer->rest);
		peer->rest_at = 0;
	}
	return 0;
}

/* Sends a refusal, and ends the connection after it. */
static void refuse(struct peer *peer, evrec_str option, const char *text)
{
	if (peer->line.out.len == 0 && frame_refuse(&peer->line.out, option, str_from(text))) {
		(void)line_send(&peer->line, &peer->dead);
	}
	peer->dead = true;
}

static void greet(struct share *s, struct peer *peer, const struct frame *hello)
{
	evrec_str option = { NULL, 0 };
	char text[192];
	bool equal, ok;

	share_lock(s);
	equal = frame_options_equal(hello, s->same, s->same_len, &option);
	if (!equal) {
		(void)snprintf(text, sizeof(text), "option '%.*s' differs", (int)(option.len < 128 ? option.len : 128),
		               option.len == 0 ? "" : option.data);
	}
	ok = equal && frame_hello(&peer->line.out, s->instance, s->same, s->same_len);
	share_unlock(s);
	peer->greeted = ok;
	peer->process = share_process(hello->instance);
	if (!equal) {
		refuse(peer, EVREC_STR("options"), text);
	}
	peer->dead = peer->dead || !ok;
}

/* All occurrences that the worker has sent are recorded, as frames are handled in order. */
static void take_over(struct share *s, struct peer *peer)
{
	share_lock(s);
	peer->left = true;
	share_unlock(s);
	peer->tells_left = true;
	s->ops->left(s->ctx, peer->number);
}

static int take_frame(struct share *s, struct peer *peer, const struct frame *f, evrec_error *err)
{
	if (f->type == FRAME_HELLO && !peer->greeted) {
		greet(s, peer, f);
		return 0;
	}
	if (!peer->greeted ||
	    (f->type != FRAME_EVENT && f->type != FRAME_MORE && f->type != FRAME_FLUSH && f->type != FRAME_ASK &&
	     f->type != FRAME_PING && f->type != FRAME_LEAVE && f->type != FRAME_BATCH)) {
		return broken(err, "a frame out of its turn");
	}
	if (f->type == FRAME_LEAVE) {
		take_over(s, peer);
		return 0;
	}
	if (f->type == FRAME_BATCH) {
		peer->had_batch = f->batch;
		s->ops->connected(s->ctx, peer->number, peer->process, f->batch);
		return 0;
	}
	if (f->type == FRAME_ASK) {
		return answer_make(s, peer, f, err);
	}
	if (f->type == FRAME_EVENT) {
		return take_event(s, peer, f, err);
	}
	if (f->type == FRAME_MORE) {
		return put_more(peer, f, err);
	}
	if (f->type == FRAME_PING) {
		peer->pinged = true;
		return 0;
	}
	peer->closing = peer->closing || f->flags == FRAME_CLOSING;
	s->ops->flush(s->ctx);
	return 0;
}

/* Handles the rest of a frame, or the next one. False: there is none, or it has the error *code. */
static bool take_next(struct share *s, struct peer *peer, int *code, evrec_error *err)
{
	struct frame f;
	int got = 1;

	if (peer->rest.len != 0) {
		*code = take_rest(s, peer, err);
	} else {
		got = line_receive(s, &peer->line, &f, err);
		peer->work--;
		*code = got > 0 ? take_frame(s, peer, &f, err) : got;
	}
	return got != 0 && *code == 0;
}

void peer_receive(struct share *s, struct peer *peer, size_t work)
{
	evrec_error err = { 0 };
	int code = 0;

	peer->work = work;
	while (peer->work > 0 && !peer->dead && !peer_is_full(s, peer) && take_next(s, peer, &code, &err)) {
	}
	if (code != 0) {
		if (err.code == EVREC_EINVALID) {
			refuse(peer, (evrec_str){ NULL, 0 }, err.message);
		}
		peer->dead = true;
	}
}
