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

static void *item_make(const void *draft)
{
	const struct trace_draft *d = draft;
	const size_t room = d->keys.aggregate.len + d->keys.local.len + d->keys.spam.len;
	evrec_fields fields = *d->event;
	struct trace_item *item = mem_alloc(sizeof(*item) + room);
	char *text;

	if (item == NULL) {
		return NULL;
	}
	fields.name = (evrec_str){ NULL, 0 };
	fields.first = fields.last = EVREC_UNSET;
	*item = (struct trace_item){ .now = d->now, .at = d->event->first, .keys = d->keys };
	text = copy_text(item->text, &item->keys.aggregate);
	text = copy_text(text, &item->keys.local);
	(void)copy_text(text, &item->keys.spam);
	item->event = evrec_event_new(&fields);
	if (item->event == NULL) {
		mem_free(item);
		return NULL;
	}
	item->size = sizeof(*item) + room + event_size(item->event);
	return item;
}

evrec_fields trace_fields(const void *item)
{
	const struct trace_item *it = item;
	evrec_fields fields = *evrec_event_fields(it->event);

	fields.first = fields.last = it->at;
	return fields;
}

static void item_free(void *item)
{
	if (item != NULL) {
		evrec_event_release(((struct trace_item *)item)->event);
		mem_free(item);
	}
}

static size_t item_size(const void *item)
{
	return ((const struct trace_item *)item)->size;
}

static evrec_str item_ns(const void *item)
{
	return evrec_event_fields(((const struct trace_item *)item)->event)->ns;
}

/* Each occurrence has an id of its own and is answered once: none is folded, merged, renamed or adopted. */
const struct outbox_ops trace_ops = {
	.make = item_make,
	.size = item_size,
	.ns = item_ns,
	.free = item_free,
};
