#include "recorder/explanation.h"

#include "recorder/broadcaster.h"
#include "recorder/sharing.h"
#include "share/explained.h"

/* ---- the bytes ---- */

static bool put(void *ctx, const evrec_suppressed *suppressed)
{
	struct buf *out = ctx;

	explained_put(out, suppressed);
	return !out->failed;
}

void explanation_write(struct hub *hub, const evrec_reference *object, struct buf *out)
{
	evrec_sink_stats stats;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		const evrec_watch *watch = hub->sinks.items[i];

		if (watch_get_sink_stats(watch, &stats)) {
			explained_put_sink(out, watch->number, str_from(stats.name));
			pipeline_explain(watch->pipeline, object, put, out);
		}
	}
	hub_unlock(hub);
	explained_put_end(out);
}

/* ---- an explanation of them ---- */

/* The block holds the explanation, its sinks, and their events. */
struct block {
	evrec_explanation explanation;
	struct buf bytes; /* the memory of all strings */
};

struct sizes {
	size_t sinks, events;
};

/* Counts the sinks and their events. EVREC_EINVALID: the bytes are not those of an explanation. */
static int measure(evrec_str bytes, struct sizes *sizes, evrec_error *err)
{
	struct bytes in = bytes_of(bytes);
	struct explained part = { .type = EXPLAINED_SINK };

	*sizes = (struct sizes){ 0, 0 };
	while (part.type != EXPLAINED_END) {
		const int code = explained_next(&in, &part, err);

		if (code != 0) {
			return code;
		}
		sizes->sinks += part.type == EXPLAINED_SINK;
		sizes->events += part.type == EXPLAINED_EVENT;
		if (sizes->sinks == 0 && sizes->events != 0) {
			return error_set(err, EVREC_EINVALID, "the peer sent events of no sink");
		}
	}
	return 0;
}

static void fill(evrec_str bytes, evrec_explained_sink *sink, evrec_suppressed *event)
{
	struct bytes in = bytes_of(bytes);
	struct explained part;

	sink--;
	while (explained_next(&in, &part, NULL) == 0 && part.type != EXPLAINED_END) {
		if (part.type == EXPLAINED_SINK) {
			*++sink = (evrec_explained_sink){ part.number, part.name, event, 0 };
		} else {
			*event++ = part.suppressed;
			sink->suppressed_len++;
		}
	}
}

/* Takes over the bytes. */
static const evrec_explanation *make(struct buf *bytes, evrec_error *err)
{
	evrec_explained_sink *sinks;
	struct block *block;
	struct sizes sizes;

	if (measure(buf_str(bytes), &sizes, err) != 0) {
		return NULL;
	}
	block = mem_alloc(sizeof(*block) + sizes.sinks * sizeof(*sinks) + sizes.events * sizeof(evrec_suppressed));
	if (block == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	sinks = (evrec_explained_sink *)(block + 1);
	fill(buf_str(bytes), sinks, (evrec_suppressed *)(sinks + sizes.sinks));
	*block = (struct block){ { sinks, sizes.sinks }, *bytes };
	*bytes = (struct buf){ 0 };
	return &block->explanation;
}

void evrec_explanation_free(const evrec_explanation *explanation)
{
	struct block *block = (struct block *)(uintptr_t)explanation;

	if (block != NULL) {
		buf_free(&block->bytes);
		mem_free(block);
	}
}

/* ---- making one ---- */

/* A question to the owner steps the share, so that callbacks may become due. */
static int ask(evrec_broadcaster *b, const evrec_reference *object, int64_t timeout, struct buf *bytes, bool *owns,
               evrec_error *err)
{
	bool asks;
	int code;

	handle_enter(b);
	asks = sharing_role(b->hub) != EVREC_SHARE_OWNER;
	handle_leave(b);
	if (b->busy && asks) {
		return error_set(err, EVREC_EINVALID, "called from inside a callback of this broadcaster");
	}
	code = sharing_ask(b->hub, object, timeout, bytes, owns, err);
	handle_enter(b);
	handle_leave(b);
	return code;
}

const evrec_explanation *evrec_explanation_new(evrec_broadcaster *b, const evrec_reference *object, int64_t timeout,
                                               evrec_error *err)
{
	const evrec_explanation *explanation = NULL;
	struct buf bytes = { 0 };
	bool owns = true;
	int code = 0;

	if (b->hub->sharing != NULL) {
		code = ask(b, object, timeout, &bytes, &owns, err);
	}
	if (code == 0 && owns) {
		explanation_write(b->hub, object, &bytes);
	}
	if (code == 0 && bytes.failed) {
		code = error_set(err, EVREC_ENOMEM, "no memory");
	}
	if (code == 0) {
		explanation = make(&bytes, err);
	}
	buf_free(&bytes);
	return explanation;
}
