#include "event/event.h"

#include <stdatomic.h>
#include <stddef.h>

struct evrec_event {
	atomic_uint refs;
	size_t size; /* bytes of the block, which holds everything that the fields point to */
	evrec_fields fields;
};

struct evrec_prepared_ref {
	atomic_uint refs;
	uint64_t number;
	evrec_reference fields;
};

void evrec_fields_init(evrec_fields *fields)
{
	*fields = (evrec_fields){
		.first = EVREC_UNSET, .last = EVREC_UNSET, .event_time = EVREC_UNSET, .series_last = EVREC_UNSET
	};
}

int64_t event_last(const evrec_fields *event)
{
	if (event->series_count != 0 && event->series_last != EVREC_UNSET) {
		return event->series_last;
	}
	return event->last != EVREC_UNSET ? event->last : event->event_time;
}

evrec_str event_controller(const evrec_fields *event)
{
	return event->controller.len != 0 ? event->controller : event->component;
}

evrec_str event_instance(const evrec_fields *event)
{
	return event->instance.len != 0 ? event->instance : event->host;
}

/*
 * An event or a reference has one block of memory, with everything that it points to behind it. room_of... counts the
 * bytes, and pack... copies them into the block and sets the pointers. Strings are NUL-terminated in the block; the
 * empty string is a literal.
 */
#define REFERENCE_AT(at)                                                                                               \
	(at) + offsetof(evrec_reference, kind), (at) + offsetof(evrec_reference, api_version),                         \
		(at) + offsetof(evrec_reference, name), (at) + offsetof(evrec_reference, ns),                          \
		(at) + offsetof(evrec_reference, uid), (at) + offsetof(evrec_reference, resource_version),             \
		(at) + offsetof(evrec_reference, field_path)

static const size_t reference_strings[] = { REFERENCE_AT(0) };
static const size_t owner_strings[] = { offsetof(evrec_owner, kind), offsetof(evrec_owner, api_version),
	                                offsetof(evrec_owner, name), offsetof(evrec_owner, uid) };
static const size_t pair_strings[] = { offsetof(evrec_pair, key), offsetof(evrec_pair, value) };
static const size_t event_strings[] = {
	offsetof(evrec_fields, name),
	offsetof(evrec_fields, ns),
	offsetof(evrec_fields, type),
	offsetof(evrec_fields, reason),
	offsetof(evrec_fields, action),
	offsetof(evrec_fields, note),
	offsetof(evrec_fields, component),
	offsetof(evrec_fields, host),
	offsetof(evrec_fields, controller),
	offsetof(evrec_fields, instance),
	offsetof(evrec_fields, resource_version),
	offsetof(evrec_fields, series_state),
	REFERENCE_AT(offsetof(evrec_fields, regarding)),
	REFERENCE_AT(offsetof(evrec_fields, related)),
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static size_t room_of(const void *from, const size_t *strings, size_t n)
{
	size_t i, room = 0;

	for (i = 0; i < n; i++) {
		const evrec_str *s = (const evrec_str *)(const void *)((const char *)from + strings[i]);

		room += s->len + (s->len != 0);
	}
	return room;
}

static char *pack(char *block, void *in, const size_t *strings, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		evrec_str *s = (evrec_str *)(void *)((char *)in + strings[i]);

		if (s->len == 0) {
			s->data = "";
			continue;
		}
		memcpy(block, s->data, s->len);
		block[s->len] = '\0';
		s->data = block;
		block += s->len + 1;
	}
	return block;
}

/* The bytes that an array of `n` structs takes in a block, with all their strings. */
static size_t room_of_all(const void *array, size_t n, size_t size, const size_t *strings, size_t strings_len)
{
	size_t i, room = n * size;

	for (i = 0; i < n; i++) {
		room += room_of((const char *)array + i * size, strings, strings_len);
	}
	return room;
}

static void *pack_array(char **block, const void *array, size_t size)
{
	void *copy = *block;

	if (size != 0) {
		memcpy(copy, array, size);
		*block += size;
	}
	return copy;
}

static char *pack_all(char *block, void *array, size_t n, size_t size, const size_t *strings, size_t strings_len)
{
	size_t i;

	for (i = 0; i < n; i++) {
		block = pack(block, (char *)array + i * size, strings, strings_len);
	}
	return block;
}

static size_t room_of_event(const evrec_fields *f)
{
	size_t room = room_of(f, event_strings, COUNT(event_strings));

	room += room_of_all(f->labels.pairs, f->labels.len, sizeof(evrec_pair), pair_strings, COUNT(pair_strings));
	room += room_of_all(f->annotations.pairs, f->annotations.len, sizeof(evrec_pair), pair_strings,
	                    COUNT(pair_strings));
	return room + room_of_all(f->owners, f->owners_len, sizeof(evrec_owner), owner_strings, COUNT(owner_strings));
}

static void pack_event(char *block, evrec_fields *f)
{
	evrec_pair *labels, *annotations;
	evrec_owner *owners;

	/* Arrays come first, since they must be aligned: their sizes are multiples of a pointer's. */
	labels = pack_array(&block, f->labels.pairs, f->labels.len * sizeof(evrec_pair));
	annotations = pack_array(&block, f->annotations.pairs, f->annotations.len * sizeof(evrec_pair));
	owners = pack_array(&block, f->owners, f->owners_len * sizeof(evrec_owner));
	block = pack(block, f, event_strings, COUNT(event_strings));
	block = pack_all(block, labels, f->labels.len, sizeof(evrec_pair), pair_strings, COUNT(pair_strings));
	block = pack_all(block, annotations, f->annotations.len, sizeof(evrec_pair), pair_strings, COUNT(pair_strings));
	(void)pack_all(block, owners, f->owners_len, sizeof(evrec_owner), owner_strings, COUNT(owner_strings));
	f->labels.pairs = labels;
	f->annotations.pairs = annotations;
	f->owners = owners;
}

evrec_event *evrec_event_new(const evrec_fields *fields)
{
	const size_t size = sizeof(evrec_event) + room_of_event(fields);
	evrec_event *event = mem_alloc(size);

	if (event == NULL) {
		return NULL;
	}
	atomic_init(&event->refs, 1);
	event->size = size;
	event->fields = *fields;
	pack_event((char *)(event + 1), &event->fields);
	return event;
}

size_t event_size(const evrec_event *event)
{
	return event->size;
}

/* The block behind its address, to which its pointers are relative. */
void event_put_block(struct buf *out, const evrec_event *event)
{
	const uintptr_t address = (uintptr_t)event;

	buf_put(out, &address, sizeof(address));
	buf_put(out, event, event->size);
}

/* Sets *pointer, which was to `len` bytes of the block at `was`, to the same bytes of this one. */
static bool move(const evrec_event *event, uintptr_t was, const void *pointer, size_t len)
{
	const char *to;
	uintptr_t at;

	memcpy(&at, pointer, sizeof(at));
	at -= was;
	if (at > event->size || len > event->size - at) {
		return false;
	}
	to = (const char *)event + at;
	memcpy((void *)(uintptr_t)pointer, &to, sizeof(to));
	return true;
}

static bool move_strings(const evrec_event *event, uintptr_t was, void *in, const size_t *strings, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		evrec_str *s = (evrec_str *)(void *)((char *)in + strings[i]);

		if (s->len == 0) {
			s->data = "";
		} else if (!move(event, was, &s->data, s->len)) {
			return false;
		}
	}
	return true;
}

static bool move_array(const evrec_event *event, uintptr_t was, const void *pointer, size_t n, size_t size,
                       const size_t *strings, size_t strings_len)
{
	char *array;

	if (n > event->size / size || !move(event, was, pointer, n * size)) {
		return false;
	}
	memcpy(&array, pointer, sizeof(array));
	for (size_t i = 0; i < n; i++) {
		if (!move_strings(event, was, array + i * size, strings, strings_len)) {
			return false;
		}
	}
	return true;
}

static bool move_event(evrec_event *event, uintptr_t was)
{
	evrec_fields *f = &event->fields;

	return move_strings(event, was, f, event_strings, COUNT(event_strings)) &&
	       move_array(event, was, &f->labels.pairs, f->labels.len, sizeof(evrec_pair), pair_strings,
	                  COUNT(pair_strings)) &&
	       move_array(event, was, &f->annotations.pairs, f->annotations.len, sizeof(evrec_pair), pair_strings,
	                  COUNT(pair_strings)) &&
	       move_array(event, was, &f->owners, f->owners_len, sizeof(evrec_owner), owner_strings,
	                  COUNT(owner_strings));
}

evrec_event *event_from_block(evrec_str bytes)
{
	const size_t size = bytes.len - sizeof(uintptr_t);
	evrec_event *event;
	uintptr_t was;

	if (bytes.len < sizeof(was) + sizeof(*event) || (event = mem_alloc(size)) == NULL) {
		return NULL;
	}
	memcpy(&was, bytes.data, sizeof(was));
	memcpy(event, bytes.data + sizeof(was), size);
	atomic_init(&event->refs, 1);
	if (event->size != size || !move_event(event, was)) {
		mem_free(event);
		return NULL;
	}
	return event;
}

evrec_event *evrec_event_retain(evrec_event *event)
{
	atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
	return event;
}

void evrec_event_release(evrec_event *event)
{
	if (event != NULL && atomic_fetch_sub(&event->refs, 1) == 1) {
		mem_free(event);
	}
}

const evrec_fields *evrec_event_fields(const evrec_event *event)
{
	return &event->fields;
}

evrec_prepared_ref *evrec_prepared_ref_new(const evrec_reference *reference, evrec_error *err)
{
	static _Atomic uint64_t numbers;
	evrec_prepared_ref *ref;

	if (check_reference(reference, "reference", err) != 0) {
		return NULL;
	}
	ref = mem_alloc(sizeof(*ref) + room_of(reference, reference_strings, COUNT(reference_strings)));
	if (ref == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	atomic_init(&ref->refs, 1);
	ref->number = atomic_fetch_add(&numbers, 1) + 1;
	ref->fields = *reference;
	(void)pack((char *)(ref + 1), &ref->fields, reference_strings, COUNT(reference_strings));
	return ref;
}

evrec_prepared_ref *evrec_prepared_ref_retain(evrec_prepared_ref *ref)
{
	atomic_fetch_add_explicit(&ref->refs, 1, memory_order_relaxed);
	return ref;
}

void evrec_prepared_ref_release(evrec_prepared_ref *ref)
{
	if (ref != NULL && atomic_fetch_sub(&ref->refs, 1) == 1) {
		mem_free(ref);
	}
}

HOT uint64_t prepared_ref_number(const evrec_prepared_ref *ref)
{
	return ref->number;
}

HOT const evrec_reference *evrec_prepared_ref_fields(const evrec_prepared_ref *ref)
{
	return &ref->fields;
}
