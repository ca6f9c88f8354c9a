#include "recorder/pipeline_inner.h"
#include "sink/trace.h"

static const evrec_str unset = { NULL, 0 };

/* An empty key is a key, so it needs an address. */
static void choose(evrec_str *key, bool chosen)
{
	if (!chosen) {
		*key = unset;
	} else if (key->data != NULL && key->len == 0) {
		key->data = "";
	}
}

/* Calls the functions, as the correlator of a sink would, but with the event as it was recorded. */
static void ask(const evrec_correlator_options *o, const evrec_fields *event, struct trace_keys *keys)
{
	if (o->key_func != NULL) {
		choose(&keys->aggregate, o->key_func(o->ctx, event, &keys->aggregate, &keys->local));
		keys->local = keys->local.data != NULL ? keys->local : event->note;
		choose(&keys->local, keys->aggregate.data != NULL);
	}
}

/* Copies the strings, which are valid only until the next function is called. False: no memory. */
static bool keep(struct buf *buf, struct trace_keys *keys)
{
	buf_clear(buf);
	buf_put_str(buf, keys->aggregate);
	buf_put_str(buf, keys->local);
	(void)buf_cstr(buf);
	if (keys->aggregate.data != NULL) {
		keys->aggregate.data = buf->data;
		keys->local.data = buf->data + keys->aggregate.len;
	}
	return !buf->failed;
}

static bool ask_all(struct pipeline *pipeline, const evrec_fields *event, struct trace_keys *keys)
{
	const evrec_correlator_options *o = &pipeline->options;

	ask(o, event, keys);
	if (o->spam_key_func == NULL) {
		return true;
	}
	if (!keep(&pipeline->note, keys)) {
		return false;
	}
	choose(&keys->spam, o->spam_key_func(o->ctx, event, &keys->spam));
	return true;
}

static void lose(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now)
{
	trace_sink_lost(pipeline->sink, now);
	pipeline_drop_unobserved(pipeline, event, keys, EVREC_CAUSE_MEMORY, now);
}

void pipeline_trace(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now)
{
	struct trace_draft draft = { .event = event, .event_keys = keys, .keys = { unset, unset, unset }, .now = now };
	const struct occurrence occurrence = {
		.id = ++pipeline->traced,
		.verb = VERB_CREATE,
		.now = clock_coarse(pipeline->clock),
		.draft = &draft,
	};
	struct observed observed;
	enum evrec_cause cause;

	if (keys == NULL || !ask_all(pipeline, event, &draft.keys)) {
		lose(pipeline, event, keys, now);
		return;
	}
	/* Counted after the functions have run, as in pipeline_record. */
	pipeline->received++;
	if (!outbox_submit(pipeline->outbox, &occurrence, &cause)) {
		trace_sink_lost(pipeline->sink, now);
		observed_init(&observed, event);
		observed.handle = 0;
		pipeline_drop(pipeline, &observed, keys, cause, now);
	}
}

bool pipeline_has_enough(const struct pipeline *pipeline)
{
	return pipeline->sink->traces && trace_sink_is_over(pipeline->sink);
}
