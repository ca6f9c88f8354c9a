#include "event/packed_inner.h"

#include "base/short_bytes.h"

#include <stddef.h>

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

/* The extras that the event has, if the keys are these; NULL: its own. */
static uint32_t find_extras(const evrec_fields *event, const struct keys *keys)
{
	const bool one_ns = event->ns.data == event->regarding.ns.data && event->ns.len == event->regarding.ns.len;
	uint32_t has = one_ns || str_eq(event->ns, event->regarding.ns) ? 0 : HAS(NAMESPACE);

	if (keys != NULL && !str_eq(keys_note(keys), event->note)) {
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

static bool has_arrays(const evrec_packed *packed)
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

static void get_arrays(const evrec_packed *packed, struct array arrays[ARRAYS])
{
	arrays[0] = array_of_pairs(packed->labels);
	arrays[1] = array_of_pairs(packed->annotations);
	arrays[2] = array_of_owners(packed->owners);
}

/* A string of the i-th element of an array. */
static evrec_str *string_in(const void *elements, const struct array *array, size_t i, size_t string)
{
	const char *element = (const char *)elements + i * array->size;

	return (evrec_str *)(void *)(uintptr_t)(element + array->strings[string]);
}

bool packed_each_string(const evrec_packed *packed, bool (*func)(void *ctx, evrec_str *string), void *ctx)
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

bool packed_move_string(void *ctx, evrec_str *string)
{
	string->data = (const char *)((uintptr_t)string->data + *(const uintptr_t *)ctx);
	return true;
}

/* ---- packing ---- */

struct packing packed_plan(const evrec_fields *event, const struct keys *keys)
{
	struct packing packing = { event, keys, sizeof(evrec_packed), 0, find_extras(event, keys) };

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

void packed_set_numbers(evrec_packed *packed, const evrec_fields *event)
{
	packed->first = event->first;
	packed->last = event->last;
	packed->event_time = event->event_time;
	packed->series_last = event->series_last;
	packed->count = event->count;
	packed->series_count = event->series_count;
}

evrec_packed *packed_make(void *memory, const struct packing *packing)
{
	const evrec_fields *event = packing->event;
	evrec_packed *packed = memory;
	char *to = packed->bytes;

	packed->size = (uint32_t)packing->size;
	packed->keys_len = (uint32_t)packing->keys_len;
	packed->has = packing->has;
	packed->labels = (uint32_t)event->labels.len;
	packed->annotations = (uint32_t)event->annotations.len;
	packed->owners = (uint32_t)event->owners_len;
	packed_set_numbers(packed, event);
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
		(void)packed_each_string(packed, put_string_of_array, &to);
	}
	return packed;
}

size_t packed_size(const evrec_packed *packed)
{
	return packed->size;
}

evrec_packed *packed_copy(void *memory, const evrec_packed *packed)
{
	evrec_packed *copy = memory;
	uintptr_t distance = (uintptr_t)copy - (uintptr_t)packed;

	memcpy(copy, packed, packed->size);
	if (has_arrays(copy)) {
		(void)packed_each_string(copy, packed_move_string, &distance);
	}
	return copy;
}

/* ---- unpacking ---- */

static void get_extras(const evrec_packed *packed, const char *from, evrec_fields *event)
{
	for (uint32_t has = packed->has; has != 0; has &= has - 1) {
		evrec_str *string = (evrec_str *)(void *)((char *)event + extra_at[__builtin_ctz(has)]);
		string_len len;

		memcpy(&len, from, sizeof(len));
		*string = (evrec_str){ from + sizeof(len), len };
		from += sizeof(len) + len;
	}
}

void packed_get_strings(const evrec_packed *packed, evrec_fields *e)
{
	const evrec_str keys = { packed_keys(packed), packed->keys_len };
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

void packed_get_numbers(const evrec_packed *packed, evrec_fields *e)
{
	e->first = packed->first;
	e->last = packed->last;
	e->event_time = packed->event_time;
	e->series_last = packed->series_last;
	e->count = packed->count;
	e->series_count = packed->series_count;
}

void evrec_packed_read(const evrec_packed *packed, evrec_fields *e)
{
	packed_get_strings(packed, e);
	packed_get_numbers(packed, e);
}

evrec_str packed_namespace(const evrec_packed *packed)
{
	evrec_fields event;

	packed_get_strings(packed, &event);
	return event.ns;
}

evrec_str packed_note(const evrec_packed *packed)
{
	evrec_fields event;

	packed_get_strings(packed, &event);
	return event.note;
}

bool packed_has_version(const evrec_packed *packed)
{
	return (packed->has & HAS(RESOURCE_VERSION)) != 0;
}
