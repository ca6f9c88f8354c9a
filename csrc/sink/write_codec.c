/* Writes as text for a spool, and as bytes for its journal. */
#include "sink/write_inner.h"

static void *write_parse(evrec_str serialized, bool *important)
{
	struct write *w = write_of(event_from_json(serialized));
	const evrec_fields *event;

	if (w == NULL) {
		return NULL;
	}
	event = evrec_event_fields(w->event);
	*important = write_is_important(event);
	if (write_is_new_style(event)) {
		w->new_style = true;
		w->count = event->series_count != 0 ? event->series_count : 1;
		w->last = event->series_count != 0 ? event->series_last : event->event_time;
		w->finished = str_eq(event->series_state, EVREC_STR("Finished"));
	}
	return w;
}

/* A write as bytes: this, the name, the note, and the event's block. */
struct packed {
	size_t name_len, note_len;
	bool new_style, has_note;
};

static bool write_pack(const void *item, const void *follow_up, struct buf *out)
{
	const struct write *w = item;
	const bool other_note = follow_up != NULL && !str_eq(write_note(w), write_note(follow_up));
	const evrec_str note = other_note ? write_note(follow_up) : buf_str(&w->note);
	struct packed packed;

	memset(&packed, 0, sizeof(packed));
	packed.has_note = w->has_note || other_note;
	packed.new_style = w->new_style;
	packed.name_len = w->name.len;
	packed.note_len = packed.has_note ? note.len : 0;
	buf_put(out, &packed, sizeof(packed));
	buf_put_str(out, buf_str(&w->name));
	buf_put(out, note.data, packed.note_len);
	event_put_block(out, w->event);
	return !out->failed;
}

static void *write_unpack(evrec_str bytes)
{
	struct packed packed;
	const char *name = bytes.data + sizeof(packed);
	struct write *w;
	size_t left;

	if (bytes.len < sizeof(packed)) {
		return NULL;
	}
	memcpy(&packed, bytes.data, sizeof(packed));
	left = bytes.len - sizeof(packed);
	if (packed.name_len > left || packed.note_len > left - packed.name_len) {
		return NULL;
	}
	left -= packed.name_len + packed.note_len;
	w = write_of(event_from_block((evrec_str){ bytes.data + bytes.len - left, left }));
	if (w == NULL) {
		return NULL;
	}
	w->new_style = packed.new_style;
	w->has_note = packed.has_note;
	buf_put(&w->name, name, packed.name_len);
	buf_put(&w->note, name + packed.name_len, packed.note_len);
	if (w->name.failed || w->note.failed) {
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

/* Parsed again, the base is part of the count. */
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

const struct spool_codec write_codec = { write_serialize,   write_parse,       write_pack, write_unpack,
	                                 write_get_changes, write_set_changes, write_free };
