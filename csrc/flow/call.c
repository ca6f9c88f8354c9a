#include "deliver/sender.h"
#include "flow/sink.h"
#include "flow/write.h"

/* Calls an embedder's functions, on the thread that polls. They answer before they return. */
struct call_transport {
	struct transport base;
	evrec_sink *sink;
};

static void call_send(struct transport *t, struct sender *s, struct entry *entry)
{
	const evrec_sink *sink = ((struct call_transport *)t)->sink;
	evrec_event *event = write_event(entry->item, entry->verb == VERB_CREATE ? BODY_CREATE : BODY_WHOLE);
	struct request request = { 0 };
	evrec_answer answer = { 0 };

	if (event == NULL || (entry->verb == VERB_PATCH && !write_encode(entry->item, BODY_PATCH, &request))) {
		answer.unsent = true;
		memcpy(answer.message, "no memory", sizeof("no memory"));
	} else if (entry->verb == VERB_PATCH && sink->ops.patch != NULL) {
		evrec_str patch = { request.body, request.body_len };

		sink->ops.patch(sink->ctx, event, patch, &answer);
	} else {
		sink->ops.create(sink->ctx, event, &answer);
	}
	request_free(&request);
	evrec_event_release(event);
	sender_answered(s, entry, &answer);
}

static void call_step(struct transport *t, struct sender *s, int64_t timeout)
{
	(void)t;
	(void)s;
	(void)timeout;
}

static void call_free(struct transport *t)
{
	struct call_transport *call = (struct call_transport *)t;

	evrec_sink_release(call->sink);
	mem_free(call);
}

static const struct transport_ops call_ops = {
	.threaded = false,
	.send = call_send,
	.step = call_step,
	.free = call_free,
};

struct transport *call_transport_new(evrec_sink *sink, evrec_error *err)
{
	struct call_transport *call = mem_zalloc(sizeof(*call));

	if (call == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	call->base.ops = &call_ops;
	call->sink = evrec_sink_retain(sink);
	return &call->base;
}
