#include "sink/write_inner.h"

bool write_is_new_style(const evrec_fields *event)
{
	return event->event_time != EVREC_UNSET && event->count == 0;
}

static void set_series(const struct write *w, evrec_fields *fields)
{
	const int64_t count = (int64_t)w->base + w->count;

	fields->series_count = 0;
	fields->series_last = EVREC_UNSET;
	fields->series_state = (evrec_str){ NULL, 0 };
	if (count >= 2) {
		fields->series_count = count < INT32_MAX ? (int32_t)count : INT32_MAX;
		fields->series_last = w->last;
		fields->series_state = w->finished ? EVREC_STR("Finished") : EVREC_STR("Ongoing");
	}
}

static void set_new_style(const struct write *w, evrec_fields *fields)
{
	if (fields->event_time == EVREC_UNSET) {
		fields->event_time = fields->first;
	}
	set_series(w, fields);
	if (fields->series_count == 0) {
		fields->event_time = w->last; /* the same time, with the fraction that a spool's text lacks */
	}
	fields->component = fields->host = (evrec_str){ NULL, 0 };
	fields->first = fields->last = EVREC_UNSET;
	fields->count = 0;
}

evrec_str write_new_name(const struct write *w)
{
	return w->changed == NULL ? (evrec_str){ NULL, 0 } : buf_str(&w->changed->name);
}

static bool has_new_note(const struct write *w)
{
	return w->changed != NULL && w->changed->has_note;
}

/* A create has no resource version, even if the server has once answered one (client-go's recordEvent). */
static void get_fields(const struct write *w, enum body body, evrec_fields *fields)
{
	evrec_packed_read(write_packed(w), fields);
	if (body == BODY_CREATE) {
		fields->resource_version = (evrec_str){ NULL, 0 };
	}
	if (write_new_name(w).len != 0) {
		fields->name = write_new_name(w);
	}
	if (has_new_note(w)) {
		fields->note = buf_str(&w->changed->note);
	}
	if (w->new_style) {
		set_new_style(w, fields);
	} else {
		fields->last = w->last;
		fields->count = w->count;
	}
}

evrec_fields write_fields(const void *item, enum body body)
{
	evrec_fields fields;

	get_fields(item, body, &fields);
	return fields;
}

void write_view(const void *item, enum body body, evrec_event *view)
{
	const struct write *w = item;
	const bool lacks_version = body == BODY_CREATE && packed_has_version(write_packed(w));

	atomic_init(&view->refs, 0);
	view->unread = w->changed == NULL && !w->new_style && !lacks_version;
	if (view->unread) {
		view->packed = write_packed(w);
		packed_get_numbers(view->packed, &view->fields);
		view->fields.last = w->last;
		view->fields.count = w->count;
	} else {
		view->packed = NULL;
		get_fields(w, body, &view->fields);
	}
}

/* Replaces the text of `b` by `s`. False: no memory, and `b` is as it was. */
static bool replace(struct buf *b, evrec_str s)
{
	if (s.len > b->len && !buf_reserve(b, s.len - b->len)) {
		b->failed = false;
		return false;
	}
	b->len = 0;
	buf_put_str(b, s);
	return true;
}

static bool may_change(struct write *w)
{
	if (w->changed == NULL) {
		w->changed = mem_zalloc(sizeof(*w->changed));
	}
	return w->changed != NULL;
}

bool write_set_new_name(struct write *w, evrec_str name)
{
	return may_change(w) && replace(&w->changed->name, name);
}

bool write_set_new_note(struct write *w, evrec_str note)
{
	const bool ok = may_change(w) && replace(&w->changed->note, note);

	if (ok) {
		w->changed->has_note = true;
	}
	return ok;
}

static void *write_make(const void *draft, outbox_room_func *room, void *ctx)
{
	const struct write_draft *d = draft;
	struct packing packing;
	evrec_fields fields;
	struct write *w;

	d->get_event(d->source, &fields);
	packing = packed_plan(&fields, d->keys);
	w = room(ctx, sizeof(*w) + packing.size);
	if (w == NULL) {
		return NULL;
	}
	*w = (struct write){ .last = d->last,
		             .count = d->count,
		             .sure = d->sure,
		             .base = d->base,
		             .new_style = d->new_style,
		             .finishes = d->finishes,
		             .finished = d->finished };
	(void)packed_make(w + 1, &packing);
	return w;
}

static void write_fini(void *item)
{
	struct write *w = item;

	if (w->changed != NULL) {
		buf_free(&w->changed->name);
		buf_free(&w->changed->note);
		mem_free(w->changed);
	}
}

void write_free(void *item)
{
	if (item != NULL) {
		write_fini(item);
		mem_free(item);
	}
}

static void *room_on_heap(void *ctx, size_t size)
{
	(void)ctx;
	return mem_alloc(size);
}

void *write_new(const struct write_draft *draft)
{
	return write_make(draft, room_on_heap, NULL);
}

static void *write_copy(const void *item)
{
	const struct write *w = item;
	struct write *copy = mem_alloc(sizeof(*copy) + packed_size(write_packed(w)));

	if (copy == NULL) {
		return NULL;
	}
	*copy = *w;
	copy->changed = NULL;
	(void)packed_copy(copy + 1, write_packed(w));
	if ((write_new_name(w).len != 0 && !write_set_new_name(copy, write_new_name(w))) ||
	    (has_new_note(w) && !write_set_new_note(copy, write_note(w)))) {
		write_free(copy);
		return NULL;
	}
	return copy;
}

evrec_str write_note(const struct write *w)
{
	return has_new_note(w) ? buf_str(&w->changed->note) : packed_note(write_packed(w));
}

static bool set_note(struct write *w, evrec_str note)
{
	if (str_eq(write_note(w), note)) {
		return true;
	}
	if (!write_set_new_note(w, note)) {
		return false;
	}
	w->version++;
	return true;
}

/* 0 leaves it as it is. */
static void write_set_base(void *item, uint32_t base)
{
	if (base != 0) {
		((struct write *)item)->base = base;
	}
}

static void write_on_time(void *item)
{
	struct write *w = item;

	w->finished = w->finished || w->finishes;
}

static bool write_fold(void *item, const void *draft)
{
	const struct write_draft *d = draft;
	struct write *w = item;

	if (d->note_changes && !set_note(w, d->note)) {
		return false;
	}
	w->last = d->last;
	w->count = d->count;
	w->sure = d->sure;
	if (d->new_style) {
		write_set_base(w, d->base);
		w->finishes = d->finishes;
		w->finished = d->finished;
	}
	return true;
}

static bool write_merge(void *item, const void *next)
{
	const struct write *later = next;
	struct write *w = item;

	if (!set_note(w, write_note(later))) {
		return false;
	}
	w->last = later->last;
	w->count = later->count;
	w->sure = later->sure;
	write_set_base(w, later->base);
	w->finishes = later->finishes;
	w->finished = later->finished;
	return true;
}

static bool write_rename(void *item, char name[OUTBOX_NAME_SIZE])
{
	struct write *w = item;
	struct buf made = { 0 };
	bool ok;

	/* Another process has the old name, perhaps from the same fake time: uses the real time. */
	name_make(&made, write_fields(w, BODY_WHOLE).regarding.name, evrec_clock_now(evrec_clock_real()));
	ok = !made.failed && made.len < OUTBOX_NAME_SIZE && write_set_new_name(w, buf_str(&made));
	if (ok) {
		memcpy(name, buf_cstr(&made), made.len + 1);
		w->version++;
	}
	buf_free(&made);
	return ok;
}

static void write_set_name(void *item, const char *name)
{
	struct write *w = item;

	(void)write_set_new_name(w, str_from(name));
	w->version++;
}

static size_t write_size(const void *item)
{
	const struct write *w = item;
	size_t size = sizeof(*w) + packed_size(write_packed(w));

	if (w->changed != NULL) {
		size += sizeof(*w->changed) + w->changed->name.cap + w->changed->note.cap;
	}
	return size;
}

static evrec_str write_namespace(const void *item)
{
	return packed_namespace(write_packed(item));
}

const struct outbox_ops write_ops = {
	.make = write_make,
	.fini = write_fini,
	.copy = write_copy,
	.fold = write_fold,
	.merge = write_merge,
	.rename = write_rename,
	.set_name = write_set_name,
	.set_base = write_set_base,
	.on_time = write_on_time,
	.size = write_size,
	.ns = write_namespace,
	.free = write_free,
};

int32_t write_sure(const void *item)
{
	return ((const struct write *)item)->sure;
}

void encoded_free(struct encoded *request)
{
	mem_free(request->ns);
	mem_free(request->name);
	mem_free(request->body);
	*request = (struct encoded){ 0 };
}

bool write_encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *request)
{
	evrec_fields fields = write_fields(item, body);
	struct buf out = { 0 };

	*request = (struct encoded){ .api = api };
	if (reader == READER_SERVER) {
		fields.series_state = (evrec_str){ NULL, 0 };
		request->api = write_is_new_style(&fields) ? api : EVREC_CORE_V1;
	}
	if (body == BODY_PATCH) {
		json_patch(&out, &fields);
	} else {
		json_event(&out, &fields, request->api);
	}
	request->ns = str_dup(fields.ns);
	request->name = str_dup(fields.name);
	(void)buf_cstr(&out);
	request->body = out.data;
	request->body_len = out.len;
	if (out.failed || request->ns == NULL || request->name == NULL) {
		encoded_free(request);
		return false;
	}
	return true;
}
