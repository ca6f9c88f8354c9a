/* Writes as text for a spool, and as bytes for its journal. */
#include "sink/write_inner.h"

static struct write *write_of(const evrec_event *event)
{
	const evrec_fields *fields = evrec_event_fields(event);
	struct write *w = mem_alloc(sizeof(*w) + packed_size(event->packed));

	if (w == NULL) {
		return NULL;
	}
	*w = (struct write){ .last = fields->last, .count = fields->count };
	(void)packed_copy(w + 1, event->packed);
	if (write_is_new_style(fields)) {
		w->new_style = true;
		w->count = fields->series_count != 0 ? fields->series_count : 1;
		w->last = fields->series_count != 0 ? fields->series_last : fields->event_time;
		w->finished = str_eq(fields->series_state, EVREC_STR("Finished"));
	}
	return w;
}

static void *write_parse(evrec_str serialized, bool *important)
{
	evrec_event *event = event_from_json(serialized);
	struct write *w = event == NULL ? NULL : write_of(event);

	if (w != NULL) {
		*important = write_is_important(evrec_event_fields(event));
	}
	evrec_event_release(event);
	return w;
}

static uint64_t write_event_number(const void *item)
{
	const evrec_fields fields = write_fields(item, BODY_WHOLE);

	return fields.name.len == 0 ? 0 : key_hash(lru_hash(fields.ns), lru_hash(fields.name));
}

/* A write as bytes: this, the name, the note, and the packed event. */
struct bytes {
	size_t name_len, note_len;
	bool new_style, has_note;
};

static bool write_pack(const void *item, const void *follow_up, struct buf *out)
{
	const struct write *w = item;
	const bool other_note = follow_up != NULL && !str_eq(write_note(w), write_note(follow_up));
	const evrec_str note = other_note ? write_note(follow_up) : write_note(w), name = write_new_name(w);
	struct bytes bytes;

	memset(&bytes, 0, sizeof(bytes));
	bytes.has_note = other_note || (w->changed != NULL && w->changed->has_note);
	bytes.new_style = w->new_style;
	bytes.name_len = name.len;
	bytes.note_len = bytes.has_note ? note.len : 0;
	buf_put(out, &bytes, sizeof(bytes));
	buf_put_str(out, name);
	buf_put(out, note.data, bytes.note_len);
	packed_put_bytes(out, write_packed(w));
	return !out->failed;
}

static void *write_unpack(evrec_str packed)
{
	const char *name = packed.data + sizeof(struct bytes), *note;
	evrec_str event;
	struct bytes bytes;
	struct write *w;
	size_t left;

	if (packed.len < sizeof(bytes)) {
		return NULL;
	}
	memcpy(&bytes, packed.data, sizeof(bytes));
	left = packed.len - sizeof(bytes);
	if (bytes.name_len > left || bytes.note_len > left - bytes.name_len) {
		return NULL;
	}
	note = name + bytes.name_len;
	event = (evrec_str){ note + bytes.note_len, left - bytes.name_len - bytes.note_len };
	if (packed_bytes_size(event) == 0 || (w = mem_zalloc(sizeof(*w) + packed_bytes_size(event))) == NULL) {
		return NULL;
	}
	w->new_style = bytes.new_style;
	if (packed_from_bytes(w + 1, event) == NULL ||
	    (bytes.name_len != 0 && !write_set_new_name(w, (evrec_str){ name, bytes.name_len })) ||
	    (bytes.has_note && !write_set_new_note(w, (evrec_str){ note, bytes.note_len }))) {
		write_free(w);
		return NULL;
	}
	return w;
}

static bool write_serialize(const void *item, struct buf *out)
{
	evrec_fields fields = write_fields(item, BODY_WHOLE);

	json_event(out, &fields, EVREC_CORE_V1);
	return !out->failed;
}

/* When parsed again, the count includes the base. */
static void write_get_changes(const void *item, const void *follow_up, struct spool_changes *changes)
{
	const struct write *w = item, *latest = follow_up == NULL ? w : follow_up;
	const uint32_t base = latest->base != 0 ? latest->base : w->base;
	const int64_t count = (int64_t)latest->count + (latest->new_style ? base : 0);

	changes->version = (uint64_t)w->version << 32;
	if (latest != w && !str_eq(write_note(w), write_note(latest))) {
		changes->version |= latest->version + UINT64_C(1);
	}
	changes->last = latest->last;
	changes->count = count < INT32_MAX ? (int32_t)count : INT32_MAX;
	changes->sure = latest->sure;
	changes->finished = latest->finished;
}

static void write_set_changes(void *item, const struct spool_changes *changes)
{
	struct write *w = item;

	w->last = changes->last;
	w->count = changes->count;
	w->sure = changes->sure;
	w->finished = changes->finished != 0;
}

const struct spool_codec write_codec = { write_serialize, write_parse,       write_event_number, write_pack,
	                                 write_unpack,    write_get_changes, write_set_changes,  write_free };
