#include "sink/write_inner.h"

#define MALLOC_OVERHEAD (2 * sizeof(size_t)) /* of each block */

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
		fields->event_time = w->last; /* the same, but for a fraction that a spool's text lacks */
	}
	fields->component = fields->host = (evrec_str){ NULL, 0 };
	fields->first = fields->last = EVREC_UNSET;
	fields->count = 0;
}

/* A create has no resource version, whatever the server once answered (client-go's recordEvent). */
evrec_fields write_fields(const void *item, enum body body)
{
	const struct write *w = item;
	evrec_fields fields = *evrec_event_fields(w->event);

	if (body == BODY_CREATE) {
		fields.resource_version = (evrec_str){ NULL, 0 };
	}
	if (w->name.len != 0) {
		fields.name = buf_str(&w->name);
	}
	if (w->has_note) {
		fields.note = buf_str(&w->note);
	}
	if (w->new_style) {
		set_new_style(w, &fields);
	} else {
		fields.last = w->last;
		fields.count = w->count;
	}
	return fields;
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

struct write *write_of(evrec_event *event)
{
	struct write *w = event == NULL ? NULL : mem_zalloc(sizeof(*w));

	if (w == NULL) {
		evrec_event_release(event);
		return NULL;
	}
	w->event = event;
	w->last = evrec_event_fields(event)->last;
	w->count = evrec_event_fields(event)->count;
	w->size = sizeof(*w) + event_size(event) + 2 * MALLOC_OVERHEAD;
	return w;
}

static void *write_make(const void *draft)
{
	const struct write_draft *d = draft;
	evrec_fields fields;
	struct write *w;

	d->get_event(d->source, &fields);
	w = write_of(evrec_event_new(&fields));
	if (w != NULL) {
		w->sure = d->sure;
	}
	if (w != NULL && d->new_style) {
		w->new_style = true;
		w->finishes = d->finishes;
		w->finished = d->finished;
		w->base = d->base;
		w->last = d->last;
		w->count = d->count;
	}
	return w;
}

void write_free(void *item)
{
	struct write *w = item;

	if (w == NULL) {
		return;
	}
	evrec_event_release(w->event);
	buf_free(&w->name);
	buf_free(&w->note);
	mem_free(w);
}

/* The event is shared: it never changes. */
static void *write_copy(const void *item)
{
	const struct write *w = item;
	struct write *copy = mem_zalloc(sizeof(*copy));

	if (copy == NULL) {
		return NULL;
	}
	*copy = *w;
	copy->name = copy->note = (struct buf){ 0 };
	(void)evrec_event_retain(w->event);
	buf_put_str(&copy->name, buf_str(&w->name));
	buf_put_str(&copy->note, buf_str(&w->note));
	if (copy->name.failed || copy->note.failed) {
		write_free(copy);
		return NULL;
	}
	return copy;
}

evrec_str write_note(const struct write *w)
{
	return w->has_note ? buf_str(&w->note) : evrec_event_fields(w->event)->note;
}

static bool set_note(struct write *w, evrec_str note)
{
	if (str_eq(write_note(w), note)) {
		return true;
	}
	if (!replace(&w->note, note)) {
		return false;
	}
	w->has_note = true;
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

	if (!set_note(w, write_fields(later, BODY_WHOLE).note)) {
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

	/* Another process holds the old name, perhaps by the same arithmetic: the real time is the better number. */
	name_make(&made, evrec_event_fields(w->event)->regarding.name, evrec_clock_now(evrec_clock_real()));
	ok = !made.failed && made.len < OUTBOX_NAME_SIZE && replace(&w->name, buf_str(&made));
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

	(void)replace(&w->name, str_from(name));
	w->version++;
}

static size_t write_size(const void *item)
{
	const struct write *w = item;

	return w->size + w->name.cap + w->note.cap;
}

static evrec_str write_namespace(const void *item)
{
	const struct write *w = item;

	return evrec_event_fields(w->event)->ns;
}

const struct outbox_ops write_ops = {
	.make = write_make,
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

evrec_event *write_event(const void *item, enum body body)
{
	const struct write *w = item;
	const evrec_fields *first = evrec_event_fields(w->event);
	evrec_fields fields;

	/* Nothing has come since: it is what was observed. */
	if (!w->new_style && w->name.len == 0 && !w->has_note && w->count == first->count && w->last == first->last &&
	    (body != BODY_CREATE || first->resource_version.len == 0)) {
		return evrec_event_retain(w->event);
	}
	fields = write_fields(item, body);
	return evrec_event_new(&fields);
}
