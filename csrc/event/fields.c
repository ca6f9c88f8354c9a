#include "event/event.h"
#include "event/packed.h"

#include <stddef.h>

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

/* A reference has one block of memory, with its strings behind it, each with a NUL. */
static const size_t reference_strings[] = {
	offsetof(evrec_reference, kind),      offsetof(evrec_reference, api_version),
	offsetof(evrec_reference, name),      offsetof(evrec_reference, ns),
	offsetof(evrec_reference, uid),       offsetof(evrec_reference, resource_version),
	offsetof(evrec_reference, field_path)
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

/* A packed event has 32 bits for lengths. SIZE_MAX: it would not fit, so the allocation fails. */
static size_t room_for(size_t head, const struct packing *packing)
{
	return packing->size > UINT32_MAX ? SIZE_MAX : head + packing->size;
}

evrec_event *evrec_event_new(const evrec_fields *fields)
{
	const struct packing packing = packed_plan(fields, NULL);
	evrec_event *event = mem_alloc(room_for(sizeof(*event), &packing));

	if (event == NULL) {
		return NULL;
	}
	atomic_init(&event->refs, 1);
	event->unread = false;
	event->packed = packed_make(event + 1, &packing);
	evrec_packed_read(event->packed, &event->fields);
	return event;
}

size_t evrec_packed_room(const evrec_fields *fields)
{
	const struct packing packing = packed_plan(fields, NULL);

	return room_for(0, &packing);
}

evrec_packed *evrec_packed_make(void *memory, const evrec_fields *fields)
{
	const struct packing packing = packed_plan(fields, NULL);

	return packed_make(memory, &packing);
}

size_t evrec_packed_size(const evrec_event *event)
{
	return event->packed == NULL ? evrec_packed_room(&event->fields) : packed_size(event->packed);
}

evrec_packed *evrec_packed_copy(void *memory, const evrec_event *event)
{
	evrec_packed *copy;

	if (event->packed == NULL) {
		return evrec_packed_make(memory, &event->fields);
	}
	copy = packed_copy(memory, event->packed);
	packed_set_numbers(copy, &event->fields);
	return copy;
}

static bool is_counted(evrec_event *event)
{
	return atomic_load_explicit(&event->refs, memory_order_relaxed) != 0;
}

evrec_event *evrec_event_retain(evrec_event *event)
{
	if (is_counted(event)) {
		atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
	}
	return event;
}

void evrec_event_release(evrec_event *event)
{
	if (event != NULL && is_counted(event) && atomic_fetch_sub(&event->refs, 1) == 1) {
		mem_free(event);
	}
}

const evrec_fields *evrec_event_fields(const evrec_event *event)
{
	if (event->unread) {
		evrec_event *read = (evrec_event *)(uintptr_t)event;

		packed_get_strings(event->packed, &read->fields);
		read->unread = false;
	}
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
