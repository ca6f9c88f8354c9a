/* Events with any bytes in their fields: their checks, names, keys and JSON. */
#include "fuzz_event.h"

#include "event/event.h"
#include "event/key.h"
#include "event/packed.h"

/* ---- checks, compared with slow definitions ---- */

static bool is_name_character(char c)
{
	return c != '\0' && strchr("abcdefghijklmnopqrstuvwxyz0123456789", c) != NULL;
}

static bool is_label(evrec_str s, size_t max)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		if (!is_name_character(s.data[i]) && s.data[i] != '-') {
			return false;
		}
	}
	return s.len > 0 && s.len <= max && s.data[0] != '-' && s.data[s.len - 1] != '-';
}

/* DNS labels, separated by dots. */
static bool is_subdomain(evrec_str s)
{
	bool ok = s.len > 0 && s.len <= 253;

	while (ok) {
		const char *dot = s.len == 0 ? NULL : memchr(s.data, '.', s.len);
		size_t len = dot == NULL ? s.len : (size_t)(dot - s.data);

		ok = is_label((evrec_str){ s.data, len }, 253);
		if (dot == NULL) {
			break;
		}
		s.data += len + 1;
		s.len -= len + 1;
	}
	return ok;
}

static bool is_text(evrec_str s, size_t max)
{
	return s.len <= max && fuzz_is_utf8(s) && (s.len == 0 || memchr(s.data, '\0', s.len) == NULL);
}

static bool is_reference(const evrec_reference *r)
{
	const evrec_str parts[] = {
		r->kind, r->api_version, r->name, r->ns, r->uid, r->resource_version, r->field_path
	};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!is_text(parts[i], FIELD_MAX)) {
			return false;
		}
	}
	return r->kind.len > 0 && (r->ns.len == 0 || is_label(r->ns, 63));
}

static bool is_map(evrec_map map)
{
	size_t i;

	for (i = 0; i < map.len; i++) {
		if (map.pairs[i].key.len == 0 || !is_text(map.pairs[i].key, FIELD_MAX)) {
			return false;
		}
	}
	return true;
}

/* ---- names ---- */

static void check_name(evrec_str reference_name, int64_t now)
{
	static const char uuid[] = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
	struct buf name = { 0 }, other = { 0 };
	size_t i;

	name_make(&name, reference_name, now);
	name_make(&other, reference_name, now);
	CHECK(is_subdomain(buf_str(&name)));
	CHECK(!str_eq(buf_str(&name), buf_str(&other)));
	if (is_subdomain(reference_name) && now >= 0 && reference_name.len + 17 <= 253) {
		CHECK(name.len > reference_name.len + 1);
		CHECK(memcmp(name.data, reference_name.data, reference_name.len) == 0);
		CHECK(name.data[reference_name.len] == '.');
		CHECK(strspn(buf_cstr(&name) + reference_name.len + 1, "0123456789abcdef") ==
		      name.len - reference_name.len - 1);
	} else if (!is_subdomain(reference_name)) {
		CHECK(name.len == sizeof(uuid) - 1);
		for (i = 0; i < name.len; i++) {
			CHECK(uuid[i] == 'x' ? strchr("0123456789abcdef", name.data[i]) != NULL
			                     : name.data[i] == uuid[i]);
		}
	}
	buf_free(&name);
	buf_free(&other);
}

/* ---- keys ---- */

static bool same_head(const evrec_fields *a, const evrec_fields *b)
{
	return str_eq(a->component, b->component) && str_eq(a->host, b->host) &&
	       str_eq(a->regarding.kind, b->regarding.kind) && str_eq(a->regarding.ns, b->regarding.ns) &&
	       str_eq(a->regarding.name, b->regarding.name) && str_eq(a->regarding.uid, b->regarding.uid) &&
	       str_eq(a->regarding.api_version, b->regarding.api_version) && str_eq(a->type, b->type);
}

/* Compares as a cache does: by hash and bytes. Equal bytes have equal hashes. */
static bool same_key(const struct key *a, const struct key *b)
{
	bool same = str_eq(a->head, b->head) && str_eq(a->tail, b->tail);

	CHECK(!same || a->hash == b->hash);
	return same;
}

/* Keys are equal if, and only if, their parts are. */
static void check_keys(const evrec_fields *a, const evrec_fields *b)
{
	struct keys one = { 0 }, two = { 0 };
	bool same_event = same_head(a, b) && str_eq(a->regarding.field_path, b->regarding.field_path) &&
	                  str_eq(a->reason, b->reason) && str_eq(a->note, b->note);
	bool same_aggregate = same_head(a, b) && str_eq(a->reason, b->reason) && str_eq(a->controller, b->controller) &&
	                      str_eq(a->instance, b->instance);

	CHECK(keys_match(&one, a) == KEYS_DIFFER);
	CHECK(keys_make(&one, a) && keys_make(&two, b));
	CHECK(same_key(keys_event(&one), keys_event(&two)) == same_event);
	CHECK(same_key(&one.aggregate, &two.aggregate) == same_aggregate);
	CHECK(same_key(&one.spam, &two.spam) == same_head(a, b));
	CHECK(!same_key(keys_event(&one), &two.aggregate));
	CHECK(keys_match(&one, a) == KEYS_MATCH);
	CHECK((keys_match(&one, b) == KEYS_MATCH) == (same_event && same_aggregate));
	if (keys_match(&one, b) == KEYS_OF_OTHER_NOTE) {
		CHECK(same_aggregate && str_eq(a->regarding.field_path, b->regarding.field_path));
		CHECK(keys_change_note(&one, b) && keys_match(&one, b) == KEYS_MATCH);
		CHECK(same_key(keys_event(&one), keys_event(&two)) && str_eq(buf_str(&one.text), buf_str(&two.text)));
	}
	keys_free(&one);
	keys_free(&two);
}

/* explain() reports the parts that a key was made of. */
static void check_split(const evrec_fields *f)
{
	evrec_suppressed what = { 0 };
	struct keys keys = { 0 };
	struct buf text = { 0 };
	evrec_str chosen;
	struct key key;

	CHECK(keys_make(&keys, f));
	buf_put_str(&text, keys.aggregate.head);
	buf_put_str(&text, keys.aggregate.tail);
	CHECK(!key_split_custom(buf_str(&text), &chosen));
	keys_split_aggregate(buf_str(&text), &what);
	CHECK(str_eq(what.regarding.name, f->regarding.name) && str_eq(what.regarding.uid, f->regarding.uid));
	CHECK(str_eq(what.type, f->type) && str_eq(what.reason, f->reason) && str_eq(what.instance, f->instance));
	buf_clear(&text);
	CHECK(key_custom(&key, &text, f->note));
	CHECK(key_split_custom(buf_str(&text), &chosen) && str_eq(chosen, f->note));
	keys_free(&keys);
	buf_free(&text);
}

/* ---- packed events ---- */

static void check_same_json(const evrec_fields *a, const evrec_fields *b)
{
	struct buf one = { 0 }, two = { 0 };

	json_event(&one, a, EVREC_CORE_V1);
	json_event(&two, b, EVREC_CORE_V1);
	CHECK(str_eq(buf_str(&one), buf_str(&two)));
	buf_free(&one);
	buf_free(&two);
}

static void check_unpacked(const evrec_fields *f, const evrec_packed *packed)
{
	evrec_fields seen;

	evrec_packed_read(packed, &seen);
	CHECK(str_eq(seen.note, f->note) && str_eq(packed_note(packed), f->note));
	CHECK(str_eq(seen.ns, f->ns) && str_eq(packed_namespace(packed), f->ns));
	CHECK(packed_has_version(packed) == (f->resource_version.len != 0));
	check_same_json(f, &seen);
}

/* Bytes that were damaged on a disk make no event, or one whose strings lie within the bytes. */
static void check_damaged(struct input *in, struct buf *bytes)
{
	const size_t at = input_u64(in) % bytes->len;
	evrec_packed *packed;
	void *memory;
	evrec_fields seen;

	bytes->data[at] = (char)(bytes->data[at] ^ input_byte(in));
	bytes->len -= input_byte(in) % 4 == 1 ? input_byte(in) % bytes->len : 0;
	memory = malloc(packed_bytes_size(buf_str(bytes)) + 1);
	packed = packed_bytes_size(buf_str(bytes)) == 0 ? NULL : packed_from_bytes(memory, buf_str(bytes));
	if (packed != NULL) {
		evrec_packed_read(packed, &seen);
		check_same_json(&seen, &seen);
	}
	free(memory);
}

static void check_packed(struct input *in, const evrec_fields *f, const evrec_fields *of_keys)
{
	struct keys keys = { 0 };
	struct packing packing = packed_plan(f, NULL);
	void *memory = malloc(packing.size), *other = malloc(packing.size), *third = NULL;
	struct buf bytes = { 0 };
	evrec_fields noted = *of_keys;

	check_unpacked(f, packed_make(memory, &packing));
	CHECK(packed_size(memory) == packing.size);
	check_unpacked(f, packed_copy(other, memory));
	packed_put_bytes(&bytes, memory);
	memset(memory, 0, packing.size);
	CHECK(packed_bytes_size(buf_str(&bytes)) == packing.size);
	check_unpacked(f, packed_from_bytes(other, buf_str(&bytes)));
	check_damaged(in, &bytes);
	/* With keys at hand, whose note may be another one. */
	CHECK(keys_make(&keys, of_keys));
	noted.note = f->note;
	packing = packed_plan(&noted, &keys);
	third = malloc(packing.size);
	check_unpacked(&noted, packed_make(third, &packing));
	keys_free(&keys);
	buf_free(&bytes);
	free(memory);
	free(other);
	free(third);
}

/* ---- the spool ---- */

/* A write that is serialized and parsed makes the same request. */
static void check_read_back(const evrec_fields *f)
{
	struct buf before = { 0 }, after = { 0 };
	evrec_event *event;

	json_event(&before, f, EVREC_CORE_V1);
	event = event_from_json(buf_str(&before));
	CHECK((event != NULL) == (f->name.len != 0 && f->ns.len != 0));
	if (event != NULL) {
		json_event(&after, evrec_event_fields(event), EVREC_CORE_V1);
		/*
		 * 64 bits do not hold the beginning of their first second, to which a time is rounded when it is
		 * written.
		 */
		CHECK(f->first < INT64_MIN + EVREC_SECOND || str_eq(buf_str(&before), buf_str(&after)));
	}
	evrec_event_release(event);
	buf_free(&before);
	buf_free(&after);
}

/* ---- recording ---- */

static void check_recorded(const evrec_fields *f, const evrec_event *event)
{
	const evrec_fields *seen = evrec_event_fields(event);

	CHECK(str_eq(seen->reason, f->reason) && str_eq(seen->type, f->type) && str_eq(seen->action, f->action));
	CHECK(str_eq(seen->regarding.name, f->regarding.name));
	CHECK(seen->ns.len != 0 && is_label(seen->ns, 63));
	CHECK(is_subdomain(seen->name));
	CHECK(fuzz_is_utf8(seen->note) && seen->note.len <= 1024);
	CHECK(seen->count == 1 && seen->first == seen->last);
	check_json(seen);
	check_read_back(seen);
}

/* A recording call accepts an event if, and only if, the checks do, and is counted either way. */
static void check_emit(const evrec_fields *f)
{
	bool related = f->related.kind.len != 0 || f->related.name.len != 0;
	const evrec_emit what = {
		.regarding = &f->regarding,
		.related = related ? &f->related : NULL,
		.type = f->type,
		.reason = f->reason,
		.action = f->action,
		.note = f->note,
		.annotations = f->annotations,
		.labels = f->labels,
		.timestamp = f->first,
	};
	bool good = is_reference(&f->regarding) && (!related || is_reference(&f->related)) && f->reason.len > 0 &&
	            is_text(f->reason, FIELD_MAX) && is_text(f->action, FIELD_MAX) && is_map(f->annotations) &&
	            is_map(f->labels) &&
	            (str_eq(f->type, EVREC_STR("Normal")) || str_eq(f->type, EVREC_STR("Warning")));
	evrec_broadcaster *b = evrec_broadcaster_new(NULL, NULL);
	evrec_recorder *r = evrec_recorder_new(b, &(evrec_recorder_options){ .component = EVREC_STR("fuzz") }, NULL);
	evrec_watch *watch = evrec_broadcaster_watch(b, 1, NULL);
	evrec_error err = { 0 };
	evrec_event *event;
	evrec_stats stats;

	CHECK(evrec_recorder_emit(r, &what, &err) == (good ? 0 : EVREC_EINVALID));
	CHECK(fuzz_is_utf8(str_from(err.message)));
	evrec_broadcaster_get_stats(b, &stats);
	CHECK(stats.recorded == 1 && stats.broadcast == good && stats.invalid == !good);
	event = evrec_watch_next(watch);
	CHECK((event != NULL) == good);
	if (good) {
		check_recorded(f, event);
	}
	evrec_event_release(event);
	evrec_watch_free(watch);
	evrec_recorder_free(r);
	evrec_broadcaster_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	struct event_input one;
	evrec_fields two;

	read_event(&in, &one);
	check_json(&one.fields);
	check_patch(&one.fields);
	check_name(one.fields.regarding.name, one.fields.first);
	two = one.fields;
	read_change(&in, &two);
	check_keys(&one.fields, &two);
	check_split(&one.fields);
	check_packed(&in, &one.fields, &two);
	check_emit(&one.fields);
	input_end(&in);
	return 0;
}
