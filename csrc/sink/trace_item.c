#include "sink/trace_item.h"

#include "outbox/outbox.h"
#include "sink/trace.h"

static char *copy_text(char *to, evrec_str *text)
{
	if (text->data != NULL) {
		memcpy(to, text->data, text->len);
		text->data = to;
	}
	return to + text->len;
}

static size_t text_len(const struct trace_keys *keys)
{
	return keys->aggregate.len + keys->local.len + keys->spam.len;
}

static void *item_make(const void *draft, outbox_room_func *room, void *ctx)
{
	const struct trace_draft *d = draft;
	evrec_fields fields = *d->event;
	struct trace_item *item;
	struct packing packing;
	char *text;

	/* The lines of one event differ in these alone. */
	fields.name = (evrec_str){ NULL, 0 };
	fields.first = fields.last = EVREC_UNSET;
	packing = packed_plan(&fields, d->event_keys);
	item = room(ctx, sizeof(*item) + packing.size + text_len(&d->keys));
	if (item == NULL) {
		return NULL;
	}
	*item = (struct trace_item){ .now = d->now, .at = d->event->first, .keys = d->keys };
	text = (char *)(item + 1) + packed_size(packed_make(item + 1, &packing));
	text = copy_text(text, &item->keys.aggregate);
	text = copy_text(text, &item->keys.local);
	(void)copy_text(text, &item->keys.spam);
	return item;
}

evrec_fields trace_fields(const void *item)
{
	const struct trace_item *it = item;
	evrec_fields fields;

	evrec_packed_read(trace_packed(it), &fields);
	fields.first = fields.last = it->at;
	return fields;
}

static size_t item_size(const void *item)
{
	const struct trace_item *it = item;

	return sizeof(*it) + packed_size(trace_packed(it)) + text_len(&it->keys);
}

static evrec_str item_ns(const void *item)
{
	return packed_namespace(trace_packed(item));
}

static void item_fini(void *item)
{
	(void)item;
}

/* Each occurrence has an id of its own and is answered once: none is folded, copied, merged, renamed or adopted. */
const struct outbox_ops trace_ops = {
	.make = item_make,
	.fini = item_fini,
	.size = item_size,
	.ns = item_ns,
};
