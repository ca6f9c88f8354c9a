#include "recorder/recorder.h"

#include "event/event.h"

/*
 * The most pairs in one map of a recorder's options. Merging them with a call's map compares each pair of one with each
 * of the other.
 */
#define DEFAULTS_MAX 64

void evrec_recorder_options_init(evrec_recorder_options *options)
{
	*options = (evrec_recorder_options){ .labels = { NULL, 0 } };
}

static int check_defaults(evrec_map map, const char *what, evrec_error *err)
{
	if (map.len > DEFAULTS_MAX) {
		return error_set(err, EVREC_EINVALID, "%s: more than %d", what, DEFAULTS_MAX);
	}
	return check_map(map, what, err);
}

static int check_options(const evrec_recorder_options *options, evrec_error *err)
{
	int code = check_text(options->component, "component", FIELD_MAX, false, err);

	if (code == 0) {
		code = check_text(options->host, "host", FIELD_MAX, false, err);
	}
	if (code == 0) {
		code = check_text(options->instance, "instance", FIELD_MAX, false, err);
	}
	if (code == 0) {
		code = check_defaults(options->labels, "labels", err);
	}
	return code != 0 ? code : check_defaults(options->annotations, "annotations", err);
}

static evrec_event *make_model(const evrec_recorder_options *options)
{
	evrec_fields fields;

	evrec_fields_init(&fields);
	fields.component = fields.controller = options->component;
	fields.host = options->host;
	fields.instance = options->instance.len != 0 ? options->instance : options->host;
	fields.labels = options->labels;
	fields.annotations = options->annotations;
	fields.count = 1;
	return evrec_event_new(&fields);
}

evrec_recorder *evrec_recorder_new(evrec_broadcaster *b, const evrec_recorder_options *options, evrec_error *err)
{
	evrec_recorder_options defaults;
	evrec_recorder *r;

	if (options == NULL) {
		evrec_recorder_options_init(&defaults);
		options = &defaults;
	}
	if (check_options(options, err) != 0) {
		return NULL;
	}
	r = mem_zalloc(sizeof(*r));
	if (r != NULL) {
		r->model = make_model(options);
	}
	if (r == NULL || r->model == NULL) {
		mem_free(r);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	r->refs = 1;
	r->event = *evrec_event_fields(r->model);
	r->labels = r->event.labels;
	r->annotations = r->event.annotations;
	r->b = b;
	b->refs++;
	recorders_add(r);
	return r;
}

void recorder_unref(evrec_recorder *r)
{
	if (--r->refs == 0) {
		recorders_remove(r);
		broadcaster_unref(r->b);
		keys_free(&r->keys);
		buf_free(&r->note);
		evrec_event_release(r->model);
		mem_free(r);
	}
}

void evrec_recorder_free(evrec_recorder *r)
{
	if (r != NULL) {
		recorder_unref(r);
	}
}

/* Checks the fields that are a part of the event's keys. */
static int check_key_fields(const evrec_emit *emit, evrec_error *err)
{
	int code = 0;

	if (emit->object == NULL) {
		code = check_reference(emit->regarding, "regarding", err);
	}
	if (code == 0) {
		code = check_type(emit->type, err);
	}
	return code != 0 ? code : check_text(emit->reason, "reason", FIELD_MAX, true, err);
}

/*
 * Checks the other fields, which may change from one occurrence to the next. The recorder's own maps were checked when
 * it was made.
 */
static int check_other_fields(const evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	int code = 0;

	if (emit->object == NULL && !is_plain(emit->regarding->resource_version)) {
		code = check_text(emit->regarding->resource_version, "regarding.resourceVersion", FIELD_MAX, false,
		                  err);
	}
	if (code == 0 && emit->related != NULL) {
		code = check_reference(emit->related, "related", err);
	}
	if (code == 0 && emit->annotations.len != 0 && emit->annotations.pairs != r->annotations.pairs) {
		code = check_map(emit->annotations, "annotations", err);
	}
	if (code == 0 && emit->labels.len != 0 && emit->labels.pairs != r->labels.pairs) {
		code = check_map(emit->labels, "labels", err);
	}
	return code;
}

/* client-go's makeEvent, but without a name, which only a new event needs, and with the note as it was given. */
static void make(evrec_fields *event, const evrec_emit *emit, int64_t now)
{
	event->name = (evrec_str){ NULL, 0 };
	event->regarding = emit->object != NULL ? *evrec_prepared_ref_fields(emit->object) : *emit->regarding;
	event->ns = event->regarding.ns.len != 0 ? event->regarding.ns : EVREC_STR("default");
	if (emit->related != NULL) {
		event->related = *emit->related;
	} else if (event->related.kind.len != 0) {
		event->related = (evrec_reference){ 0 };
	}
	event->annotations = emit->annotations;
	event->labels = emit->labels;
	event->type = emit->type;
	event->reason = emit->reason;
	event->action = emit->action;
	event->note = emit->note;
	event->first = event->last = emit->timestamp != EVREC_UNSET ? emit->timestamp : now;
}

void evrec_emit_init(evrec_emit *emit)
{
	*emit = (evrec_emit){ .timestamp = EVREC_UNSET };
}

/* The number of the event's reference; 0 if it is not a prepared one. */
static uint64_t number_of(const evrec_emit *emit)
{
	return emit->object != NULL ? prepared_ref_number(emit->object) : 0;
}

/* Whether the event has the keys of the call before. */
HOT static enum keys_match match(evrec_recorder *r, const evrec_emit *emit, const evrec_fields *event)
{
	const uint64_t object = number_of(emit);
	enum keys_match match;

	/* In nginx, not comparing the reference's fields saves 5 to 10 % of an event's time: 21 of 136 cache lines of code. */
	if (object != 0 && object == r->object) {
		return keys_match_of_object(&r->keys, event);
	}
	match = keys_match_of_source(&r->keys, event);
	if (match != KEYS_DIFFER) {
		r->object = object;
	}
	return match;
}

static bool make_keys(evrec_recorder *r, const evrec_emit *emit, const evrec_fields *event, enum keys_match match)
{
	if (match == KEYS_OF_OTHER_NOTE) {
		return keys_change_note(&r->keys, event);
	}
	r->object = number_of(emit);
	return keys_make(&r->keys, event);
}

/* `complete` is false if there was no memory for all of *emit. */
HOT static int record(evrec_recorder *r, const evrec_emit *emit, bool complete, evrec_error *err)
{
	evrec_broadcaster *b = r->b;
	/*
	 * A call from inside a callback uses other memory: the outer call still needs the recorder's own event and
	 * note.
	 */
	evrec_fields *event = &r->event, inner;
	struct buf *note = &r->note;
	evrec_error own;
	enum keys_match known;
	bool ok;
	int64_t now;
	int code;

	if (err == NULL) {
		err = &own;
	}
	if (emit->object == NULL && emit->regarding == NULL) {
		return evrec_recorder_refuse(r, "regarding: missing", err);
	}
	if (b->busy) {
		inner = r->event;
		event = &inner;
		note = &b->inner_note;
	}
	now = evrec_clock_now(b->options.clock);
	make(event, emit, now);
	/* If the keys are equal, the call before has checked their fields; and the note is clean if it is the same. */
	known = b->busy ? KEYS_DIFFER : match(r, emit, event);
	code = check_other_fields(r, emit, err);
	if (code == 0 && emit->action.len != 0) {
		code = check_text(emit->action, "action", FIELD_MAX, false, err);
		/* The action is not in the keys, so it is counted here. */
		known = code == 0 && !recorder_count(r, &r->actions, emit->action) ? known : KEYS_DIFFER;
	}
	if (code == 0 && known == KEYS_DIFFER) {
		code = check_key_fields(emit, err);
	}
	if (code != 0) {
		/* make() clears `related` only if that has a kind, and an invalid one may have none. */
		event->related = (evrec_reference){ 0 };
		broadcaster_refuse(b, err->message);
		return code;
	}
	if (known == KEYS_MATCH) {
		return broadcaster_record(b, event, complete ? &r->keys : NULL, now, err);
	}
	if (known == KEYS_DIFFER && !keys_have_reason(&r->keys, emit->reason)) {
		(void)recorder_count(r, &r->reasons, emit->reason);
	}
	buf_clear(note);
	event->note = text_clean(emit->note, b->options.max_message_bytes, note);
	if (b->busy) {
		return broadcaster_defer(b, event, complete && !note->failed, err);
	}
	/* A note may equal the one of the call before only after it was cleaned or cut. */
	if (event->note.data != emit->note.data) {
		known = match(r, emit, event);
	}
	ok = complete && !note->failed && (known == KEYS_MATCH || make_keys(r, emit, event, known));
	code = broadcaster_record(b, event, ok ? &r->keys : NULL, now, err);
	recorders_tell(b);
	return code;
}

static bool has_key(evrec_map map, evrec_str key)
{
	size_t i;

	for (i = 0; i < map.len && !str_eq(map.pairs[i].key, key); i++) {
	}
	return i < map.len;
}

/*
 * Adds to *map the defaults whose keys it lacks. Both may need a block of their own: then *block is set, for the caller
 * to free after the last use of *map. False: no memory.
 */
static bool add_defaults(evrec_map *map, evrec_map defaults, evrec_pair **block)
{
	size_t i, len = map->len;

	if (len == 0 || defaults.len == 0) {
		*map = len == 0 ? defaults : *map;
		return true;
	}
	*block = mem_alloc((len + defaults.len) * sizeof(**block));
	if (*block == NULL) {
		return false;
	}
	memcpy(*block, map->pairs, len * sizeof(**block));
	for (i = 0; i < defaults.len; i++) {
		if (!has_key(*map, defaults.pairs[i].key)) {
			(*block)[len++] = defaults.pairs[i];
		}
	}
	*map = (evrec_map){ *block, len };
	return true;
}

static int check_all(const evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	int code = check_other_fields(r, emit, err);

	if (code == 0) {
		code = check_text(emit->action, "action", FIELD_MAX, false, err);
	}
	return code != 0 ? code : check_key_fields(emit, err);
}

/* Adds the recorder's maps to those of *emit, as add_defaults does. False: no memory. */
static bool add_maps(const evrec_recorder *r, evrec_emit *emit, evrec_pair *blocks[2])
{
	return add_defaults(&emit->labels, r->labels, &blocks[0]) &&
	       add_defaults(&emit->annotations, r->annotations, &blocks[1]);
}

static void free_maps(evrec_pair *blocks[2])
{
	mem_free(blocks[0]);
	mem_free(blocks[1]);
}

evrec_event *recorder_make_event(const evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	evrec_fields event = *evrec_event_fields(r->model);
	evrec_pair *blocks[2] = { NULL, NULL };
	evrec_emit whole = *emit;
	evrec_event *made = NULL;
	struct buf note = { 0 };

	if (emit->object == NULL && emit->regarding == NULL) {
		error_set(err, EVREC_EINVALID, "regarding: missing");
		return NULL;
	}
	if (!add_maps(r, &whole, blocks)) {
		error_set(err, EVREC_ENOMEM, "no memory");
	} else if (check_all(r, &whole, err) == 0) {
		make(&event, &whole, 0);
		event.note = text_clean(whole.note, r->b->options.max_message_bytes, &note);
		made = note.failed ? NULL : evrec_event_new(&event);
		if (made == NULL) {
			error_set(err, EVREC_ENOMEM, "no memory");
		}
	}
	buf_free(&note);
	free_maps(blocks);
	return made;
}

static int emit_with_defaults(evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	evrec_pair *blocks[2] = { NULL, NULL };
	evrec_emit whole = *emit;
	const bool complete = add_maps(r, &whole, blocks);
	const int code = record(r, &whole, complete, err);

	free_maps(blocks);
	return code;
}

HOT int evrec_recorder_emit(evrec_recorder *r, const evrec_emit *emit, evrec_error *err)
{
	const bool plain = r->labels.len == 0 && r->annotations.len == 0;

	return plain ? record(r, emit, true, err) : emit_with_defaults(r, emit, err);
}

int evrec_recorder_refuse(evrec_recorder *r, const char *message, evrec_error *err)
{
	broadcaster_refuse(r->b, message);
	return error_set(err, EVREC_EINVALID, "%s", message);
}

int evrec_recorder_drop(evrec_recorder *r, const char *message, evrec_error *err)
{
	broadcaster_drop(r->b);
	return error_set(err, EVREC_EDROPPED, "%s", message);
}
