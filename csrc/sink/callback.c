#include "kubernetes/verdict.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/sink.h"
#include "sink/write.h"

#include <stddef.h>

/* The embedder's functions, called on the thread that polls. They answer before they return, as an API server would. */
struct callback_sink {
	evrec_sink base;
	evrec_sink_ops ops;
	void *ctx;
};

struct callback {
	struct protocol base;
	struct callback_sink *sink; /* retained */
	struct buf patch;           /* of the write that is sent now */
};

static void call(struct callback *callback, const struct entry *entry, evrec_answer *answer)
{
	const struct callback_sink *sink = callback->sink;
	struct buf *patch = &callback->patch;
	evrec_event event;

	write_view(entry->item, entry->verb == VERB_CREATE ? BODY_CREATE : BODY_WHOLE, &event);
	if (entry->verb == VERB_CREATE || sink->ops.patch == NULL) {
		sink->ops.create(sink->ctx, &event, answer);
		return;
	}
	buf_clear(patch);
	json_patch(patch, evrec_event_fields(&event));
	if (patch->failed) {
		answer->unsent = true;
		memcpy(answer->message, "no memory", sizeof("no memory"));
	} else {
		sink->ops.patch(sink->ctx, &event, buf_str(patch), answer);
	}
}

static void callback_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct entry *entry = entries[0];
	const struct kubernetes_try try = { entry->verb, entry_may_exist(entry), entry->renamed, false };
	evrec_answer answer;
	struct outcome outcome;

	(void)n;
	/* Up to the strings, which are long. */
	memset(&answer, 0, offsetof(evrec_answer, name));
	answer.name[0] = answer.resource_version[0] = answer.message[0] = '\0';
	call((struct callback *)p, entry, &answer);
	kubernetes_outcome(&try, &answer, &outcome);
	sender_answered(s, entry, &outcome);
	sender_request_ended(s, kubernetes_result(&answer), answer.retry_after);
}

static void callback_free(struct protocol *p)
{
	struct callback *callback = (struct callback *)p;

	evrec_sink_release(&callback->sink->base);
	buf_free(&callback->patch);
	mem_free(callback);
}

static const struct protocol_ops callback_ops = {
	.does_io = false,
	.send = callback_send,
	.free = callback_free,
};

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct callback *callback = mem_zalloc(sizeof(*callback));

	if (callback == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	callback->base = (struct protocol){ .ops = &callback_ops, .max_batch = 1, .max_in_flight = 1 };
	callback->sink = (struct callback_sink *)evrec_sink_retain(sink);
	return &callback->base;
}

/* The functions of two Lua states differ, so only their presence counts. */
static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	fingerprint_add_number(f, "patch", ((const struct callback_sink *)sink)->ops.patch != NULL);
}

static void free_kind(evrec_sink *sink)
{
	const struct callback_sink *callbacks = (struct callback_sink *)sink;

	if (callbacks->ops.free != NULL) {
		callbacks->ops.free(callbacks->ctx);
	}
}

evrec_sink *evrec_sink_new(const evrec_sink_ops *ops, void *ctx, const evrec_sink_options *options, evrec_error *err)
{
	struct callback_sink *sink;

	if (ops == NULL || ops->create == NULL) {
		error_set(err, EVREC_EINVALID, "create: a sink needs this function");
		return NULL;
	}
	sink = sink_new(sizeof(*sink), options, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = ops->name == NULL ? "custom" : ops->name;
	sink->base.shows_states = true;
	sink->base.calls_embedder = true;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.open = open_protocol;
	sink->base.free = free_kind;
	sink->ops = *ops;
	sink->ctx = ctx;
	return &sink->base;
}
