#include "event/packed.h"

#include "base/short_bytes.h"
#include "event/key.h"

#include <stddef.h>

/*
 * Behind the struct lie, in this order: the arrays of labels, annotations and owners, which are aligned; the text of
 * the keys; the strings that this text lacks, of which `has` tells, each behind its length; the strings of the arrays,
 * which point to them.
 */
struct packed {
	uint32_t size, keys_len;
	uint32_t has; /* a bit for each enum extra */
	uint32_t labels, annotations, owners;
	int64_t first, last, event_time, series_last;
	int32_t count, series_count;
	char bytes[];
};

typedef uint32_t string_len;

enum extra {
	NAMESPACE, /* if it is not the object's */
	NOTE,      /* if it is not that of the keys */
	NAME,
	ACTION,
	RESOURCE_VERSION,
	OBJECT_VERSION,
	SERIES_STATE,
	RELATED_KIND,
	RELATED_API_VERSION,
	RELATED_NAME,
	RELATED_NAMESPACE,
	RELATED_UID,
	RELATED_VERSION,
	RELATED_FIELD_PATH,
	EXTRAS
};
#define HAS(extra) (UINT32_C(1) << (extra))

/* Offset of each in evrec_fields. */
static const size_t extra_at[EXTRAS] = {
	[NAMESPACE] = offsetof(evrec_fields, ns),
	[NOTE] = offsetof(evrec_fields, note),
	[NAME] = offsetof(evrec_fields, name),
	[ACTION] = offsetof(evrec_fields, action),
	[RESOURCE_VERSION] = offsetof(evrec_fields, resource_version),
	[OBJECT_VERSION] = offsetof(evrec_fields, regarding.resource_version),
	[SERIES_STATE] = offsetof(evrec_fields, series_state),
	[RELATED_KIND] = offsetof(evrec_fields, related.kind),
	[RELATED_API_VERSION] = offsetof(evrec_fields, related.api_version),
	[RELATED_NAME] = offsetof(evrec_fields, related.name),
	[RELATED_NAMESPACE] = offsetof(evrec_fields, related.ns),
	[RELATED_UID] = offsetof(evrec_fields, related.uid),
	[RELATED_VERSION] = offsetof(evrec_fields, related.resource_version),
	[RELATED_FIELD_PATH] = offsetof(evrec_fields, related.field_path),
};

static const evrec_str *extra_of(const evrec_fields *event, size_t extra)
{
	return (const evrec_str *)(const void *)((const char *)event + extra_at[extra]);
}

/* Whether any string of a reference is set: most events have no related one. */
static bool is_any_set(const evrec_reference *r)
{
	return (r->kind.len | r->api_version.len | r->name.len | r->ns.len | r->uid.len | r->resource_version.len |
	        r->field_path.len) != 0;
}

static inline uint32_t bit_if_set(evrec_str string, size_t extra)
{
	return (uint32_t)(string.len != 0) << extra;
}

/* str_eq, for strings that are mostly one. */
static inline bool is_same(evrec_str a, evrec_str b)
{
	return (a.data == b.data && a.len == b.len) || str_eq(a, b);
}

/* The extras that the event has, if the keys are these; NULL: its own. */
static uint32_t find_extras(const evrec_fields *event, const struct keys *keys)
{
	uint32_t has = is_same(event->ns, event->regarding.ns) ? 0 : HAS(NAMESPACE);

	if (keys != NULL && !is_same(keys_note(keys), event->note)) {
		has |= HAS(NOTE);
	}
	has |= bit_if_set(event->name, NAME) | bit_if_set(event->action, ACTION) |
	       bit_if_set(event->resource_version, RESOURCE_VERSION) |
	       bit_if_set(event->regarding.resource_version, OBJECT_VERSION) |
	       bit_if_set(event->series_state, SERIES_STATE);
	if (is_any_set(&event->related)) {
		for (size_t i = RELATED_KIND; i < EXTRAS; i++) {
			has |= bit_if_set(*extra_of(event, i), i);
		}
	}
	return has;
}

static size_t room_of_extras(const evrec_fields *event, uint32_t has)
{
	size_t room = 0;

	for (; has != 0; has &= has - 1) {
		room += sizeof(string_len) + extra_of(event, (size_t)__builtin_ctz(has))->len;
	}
	return room;
}

/* ---- labels, annotations and owners, which few events have ---- */

struct array {
	size_t n, size; /* elements, and bytes of each */
	const size_t *strings;
	size_t strings_len;
};

static const size_t pair_strings[] = { offsetof(evrec_pair, key), offsetof(evrec_pair, value) };
static const size_t owner_strings[] = { offsetof(evrec_owner, kind), offsetof(evrec_owner, api_version),
	                                offsetof(evrec_owner, name), offsetof(evrec_owner, uid) };
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define ARRAYS 3

static bool has_arrays(const struct packed *packed)
{
	return (packed->labels | packed->annotations | packed->owners) != 0;
}

static struct array array_of_pairs(size_t n)
{
	return (struct array){ n, sizeof(evrec_pair), pair_strings, COUNT(pair_strings) };
}

static struct array array_of_owners(size_t n)
{
	return (struct array){ n, sizeof(evrec_owner), owner_strings, COUNT(owner_strings) };
}

static void get_arrays(const struct packed *packed, struct array arrays[ARRAYS])
{
	arrays[0] = array_of_pairs(packed->labels);
	arrays[1] = array_of_pairs(packed->annotations);
	arrays[2] = array_of_owners(packed->owners);
}

static size_t bytes_of_arrays(const struct packed *packed)
{
	return (packed->labels + (size_t)packed->annotations) * sizeof(evrec_pair) +
	       packed->owners * sizeof(evrec_owner);
}

/* A string of the i-th element of an array. */
static evrec_str *string_in(const void *elements, const struct array *array, size_t i, size_t string)
{
	const char *element = (const char *)elements + i * array->size;

	return (evrec_str *)(void *)(uintptr_t)(element + array->strings[string]);
}

/* Calls `func` for each string of the arrays of the packed event, until it returns false. */
static bool each_string(const struct packed *packed, bool (*func)(void *ctx, evrec_str *string), void *ctx)
{
	struct array arrays[ARRAYS];
	const char *elements = packed->bytes;

	get_arrays(packed, arrays);
	for (size_t a = 0; a < ARRAYS; a++) {
		for (size_t i = 0; i < arrays[a].n; i++) {
			for (size_t s = 0; s < arrays[a].strings_len; s++) {
				if (!func(ctx, string_in(elements, &arrays[a], i, s))) {
					return false;
				}
			}
		}
		elements += arrays[a].n * arrays[a].size;
	}
	return true;
}

static size_t room_of_array(const void *elements, struct array array)
{
	size_t room = array.n * array.size;

	for (size_t i = 0; i < array.n; i++) {
		for (size_t s = 0; s < array.strings_len; s++) {
			room += string_in(elements, &array, i, s)->len;
		}
	}
	return room;
}

static size_t room_of_arrays(const evrec_fields *e)
{
	return room_of_array(e->labels.pairs, array_of_pairs(e->labels.len)) +
	       room_of_array(e->annotations.pairs, array_of_pairs(e->annotations.len)) +
	       room_of_array(e->owners, array_of_owners(e->owners_len));
}

static char *put_array(char *to, const void *elements, size_t size)
{
	if (size != 0) {
		memcpy(to, elements, size);
	}
	return to + size;
}

static char *put_arrays(char *to, const evrec_fields *e)
{
	to = put_array(to, e->labels.pairs, e->labels.len * sizeof(evrec_pair));
	to = put_array(to, e->annotations.pairs, e->annotations.len * sizeof(evrec_pair));
	return put_array(to, e->owners, e->owners_len * sizeof(evrec_owner));
}

/* Moves a string to the place at *ctx, behind which the next one goes. */
static bool put_string_of_array(void *ctx, evrec_str *string)
{
	char **to = ctx;

	if (string->len != 0) {
		memcpy(*to, string->data, string->len);
	}
	string->data = *to;
	*to += string->len;
	return true;
}

/* The strings lie as far as `*ctx` from where they were. */
static bool move_string(void *ctx, evrec_str *string)
{
	string->data = (const char *)((uintptr_t)string->data + *(const uintptr_t *)ctx);
	return true;
}

/* ---- packing ---- */

struct packing packed_plan(const evrec_fields *event, const struct keys *keys)
{
	struct packing packing = { event, keys, sizeof(struct packed), 0, find_extras(event, keys) };

	packing.keys_len = keys != NULL ? keys->text.len : keys_text_size(event);
	packing.size += packing.keys_len + room_of_extras(event, packing.has);
	if (event->labels.len != 0 || event->annotations.len != 0 || event->owners_len != 0) {
		packing.size += room_of_arrays(event);
	}
	return packing;
}

static char *put_extras(char *to, const evrec_fields *event, uint32_t has)
{
	for (; has != 0; has &= has - 1) {
		const evrec_str *string = extra_of(event, (size_t)__builtin_ctz(has));
		const string_len len = (string_len)string->len;

		memcpy(to, &len, sizeof(len));
		bytes_copy(to + sizeof(len), string->data, string->len);
		to += sizeof(len) + len;
	}
	return to;
}

struct packed *packed_make(void *memory, const struct packing *packing)
{
	const evrec_fields *event = packing->event;
	struct packed *packed = memory;
	char *to = packed->bytes;

	packed->size = (uint32_t)packing->size;
	packed->keys_len = (uint32_t)packing->keys_len;
	packed->has = packing->has;
	packed->labels = (uint32_t)event->labels.len;
	packed->annotations = (uint32_t)event->annotations.len;
	packed->owners = (uint32_t)event->owners_len;
	packed->first = event->first;
	packed->last = event->last;
	packed->event_time = event->event_time;
	packed->series_last = event->series_last;
	packed->count = event->count;
	packed->series_count = event->series_count;
	if (has_arrays(packed)) {
		to = put_arrays(to, event);
	}
	if (packing->keys != NULL) {
		memcpy(to, packing->keys->text.data, packing->keys_len);
	} else {
		keys_put_text(to, event);
	}
	to = put_extras(to + packing->keys_len, event, packing->has);
	if (has_arrays(packed)) {
		(void)each_string(packed, put_string_of_array, &to);
	}
	return packed;
}

size_t packed_size(const struct packed *packed)
{
	return packed->size;
}

struct packed *packed_copy(void *memory, const struct packed *packed)
{
	struct packed *copy = memory;
	uintptr_t distance = (uintptr_t)copy - (uintptr_t)packed;

	memcpy(copy, packed, packed->size);
	if (has_arrays(copy)) {
		(void)each_string(copy, move_string, &distance);
	}
	return copy;
}

/* ---- unpacking ---- */

static const char *keys_of(const struct packed *packed)
{
	return packed->bytes + bytes_of_arrays(packed);
}

static void get_extras(const struct packed *packed, const char *from, evrec_fields *event)
{
	for (uint32_t has = packed->has; has != 0; has &= has - 1) {
		evrec_str *string = (evrec_str *)(void *)((char *)event + extra_at[__builtin_ctz(has)]);
		string_len len;

		memcpy(&len, from, sizeof(len));
		*string = (evrec_str){ from + sizeof(len), len };
		from += sizeof(len) + len;
	}
}

void packed_get_strings(const struct packed *packed, evrec_fields *e)
{
	const evrec_str keys = { keys_of(packed), packed->keys_len };
	const evrec_str unset = { "", 0 };

	e->name = e->action = e->resource_version = e->regarding.resource_version = e->series_state = unset;
	e->related = (evrec_reference){ unset, unset, unset, unset, unset, unset, unset };
	keys_read_text(keys, e);
	e->ns = e->regarding.ns;
	get_extras(packed, keys.data + keys.len, e);
	e->labels = (evrec_map){ (const evrec_pair *)(const void *)packed->bytes, packed->labels };
	e->annotations = (evrec_map){ e->labels.pairs + packed->labels, packed->annotations };
	e->owners = (const evrec_owner *)(const void *)(e->annotations.pairs + packed->annotations);
	e->owners_len = packed->owners;
}

void packed_get_numbers(const struct packed *packed, evrec_fields *e)
{
	e->first = packed->first;
	e->last = packed->last;
	e->event_time = packed->event_time;
	e->series_last = packed->series_last;
	e->count = packed->count;
	e->series_count = packed->series_count;
}

void packed_get_fields(const struct packed *packed, evrec_fields *e)
{
	packed_get_strings(packed, e);
	packed_get_numbers(packed, e);
}

evrec_str packed_namespace(const struct packed *packed)
{
	evrec_fields event;

	packed_get_strings(packed, &event);
	return event.ns;
}

evrec_str packed_note(const struct packed *packed)
{
	evrec_fields event;

	packed_get_strings(packed, &event);
	return event.note;
}

bool packed_has_version(const struct packed *packed)
{
	return (packed->has & HAS(RESOURCE_VERSION)) != 0;
}

/* ---- as bytes ---- */

/* The packed event behind its address, as the strings of its arrays have addresses. */
void packed_put_bytes(struct buf *out, const struct packed *packed)
{
	const uintptr_t address = (uintptr_t)packed;

	buf_put(out, &address, sizeof(address));
	buf_put(out, packed, packed->size);
}

static bool check_extras(evrec_str rest, uint32_t has, size_t *left)
{
	for (size_t i = 0; i < EXTRAS; i++) {
		string_len len;

		if ((has & HAS(i)) == 0) {
			continue;
		}
		if (rest.len < sizeof(len)) {
			return false;
		}
		memcpy(&len, rest.data, sizeof(len));
		if (rest.len - sizeof(len) < len) {
			return false;
		}
		rest = (evrec_str){ rest.data + sizeof(len) + len, rest.len - sizeof(len) - len };
	}
	*left = rest.len;
	return has >> EXTRAS == 0;
}

struct bounds {
	uintptr_t start;
	size_t size;
};

static bool is_within(void *ctx, evrec_str *string)
{
	const struct bounds *bounds = ctx;
	const uintptr_t at = (uintptr_t)string->data - bounds->start;

	return at <= bounds->size && string->len <= bounds->size - at;
}

size_t packed_bytes_size(evrec_str bytes)
{
	return bytes.len < sizeof(uintptr_t) + sizeof(struct packed) ? 0 : bytes.len - sizeof(uintptr_t);
}

struct packed *packed_from_bytes(void *memory, evrec_str bytes)
{
	struct packed *packed = memory;
	struct bounds was;
	uintptr_t distance;
	size_t arrays, left;

	memcpy(&was.start, bytes.data, sizeof(was.start));
	was.size = bytes.len - sizeof(was.start);
	memcpy(packed, bytes.data + sizeof(was.start), was.size);
	arrays = bytes_of_arrays(packed);
	left = was.size - sizeof(*packed);
	if (packed->size != was.size || arrays > left || packed->keys_len > left - arrays ||
	    !keys_check_text((evrec_str){ keys_of(packed), packed->keys_len })) {
		return NULL;
	}
	left -= arrays + packed->keys_len;
	if (!check_extras((evrec_str){ keys_of(packed) + packed->keys_len, left }, packed->has, &left) ||
	    !each_string(packed, is_within, &was)) {
		return NULL;
	}
	distance = (uintptr_t)packed - was.start;
	(void)each_string(packed, move_string, &distance);
	return packed;
}
