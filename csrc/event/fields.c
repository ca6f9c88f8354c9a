#include "event/event.h"

#include <stdatomic.h>

struct evrec_event {
	atomic_uint refs;
	evrec_fields fields;
};

struct evrec_ref {
	atomic_uint refs;
	evrec_reference fields;
};

void evrec_fields_init(evrec_fields *fields)
{
	*fields = (evrec_fields){
		.first = EVREC_UNSET, .last = EVREC_UNSET, .event_time = EVREC_UNSET, .series_last = EVREC_UNSET
	};
}

/*
 * Gathers everything that a struct points to behind it, in one block. Run twice over the same fields: without a block
 * it only counts bytes, with one it copies, and makes the pointers point into the block.
 */
struct packer {
	char *block;
	size_t used;
};

static void *pack_bytes(struct packer *p, const void *data, size_t size, size_t room)
{
	char *at = p->block == NULL ? NULL : p->block + p->used;

	p->used += room;
	if (at != NULL && size != 0) {
		memcpy(at, data, size);
	}
	return at;
}

static void pack_str(struct packer *p, evrec_str *s)
{
	char *at = pack_bytes(p, s->data, s->len, s->len + 1);

	if (at != NULL) {
		at[s->len] = '\0';
		s->data = at;
	}
}

static void pack_reference(struct packer *p, evrec_reference *r)
{
	pack_str(p, &r->kind);
	pack_str(p, &r->api_version);
	pack_str(p, &r->name);
	pack_str(p, &r->ns);
	pack_str(p, &r->uid);
	pack_str(p, &r->resource_version);
	pack_str(p, &r->field_path);
}

static void pack_map(struct packer *p, evrec_map *map, evrec_pair *pairs)
{
	size_t i;

	for (i = 0; i < map->len; i++) {
		evrec_pair pair = map->pairs[i];

		pack_str(p, &pair.key);
		pack_str(p, &pair.value);
		if (pairs != NULL) {
			pairs[i] = pair;
		}
	}
	if (pairs != NULL) {
		map->pairs = pairs;
	}
}

static void pack_owners(struct packer *p, evrec_fields *f, evrec_owner *owners)
{
	size_t i;

	for (i = 0; i < f->owners_len; i++) {
		evrec_owner owner = f->owners[i];

		pack_str(p, &owner.kind);
		pack_str(p, &owner.api_version);
		pack_str(p, &owner.name);
		pack_str(p, &owner.uid);
		if (owners != NULL) {
			owners[i] = owner;
		}
	}
	if (owners != NULL) {
		f->owners = owners;
	}
}

static void pack_fields(struct packer *p, evrec_fields *f)
{
	evrec_str *strings[] = { &f->name,    &f->ns,   &f->resource_version, &f->type, &f->reason,
		                 &f->action,  &f->note, &f->component,        &f->host, &f->controller,
		                 &f->instance };
	size_t labels_size = f->labels.len * sizeof(evrec_pair);
	size_t annotations_size = f->annotations.len * sizeof(evrec_pair);
	size_t owners_size = f->owners_len * sizeof(evrec_owner);
	evrec_pair *labels, *annotations;
	evrec_owner *owners;
	size_t i;

	/* What has to be aligned comes first; the sizes are multiples of a pointer's. */
	labels = pack_bytes(p, f->labels.pairs, labels_size, labels_size);
	annotations = pack_bytes(p, f->annotations.pairs, annotations_size, annotations_size);
	owners = pack_bytes(p, f->owners, owners_size, owners_size);
	for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		pack_str(p, strings[i]);
	}
	pack_reference(p, &f->regarding);
	pack_reference(p, &f->related);
	pack_map(p, &f->labels, labels);
	pack_map(p, &f->annotations, annotations);
	pack_owners(p, f, owners);
}

evrec_event *evrec_event_new(const evrec_fields *fields)
{
	struct packer count = { NULL, 0 };
	evrec_fields scratch = *fields;
	evrec_event *event;

	pack_fields(&count, &scratch);
	event = mem_alloc(sizeof(*event) + count.used);
	if (event == NULL) {
		return NULL;
	}
	atomic_init(&event->refs, 1);
	event->fields = *fields;
	pack_fields(&(struct packer){ (char *)(event + 1), 0 }, &event->fields);
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

evrec_ref *evrec_ref_new(const evrec_reference *reference, evrec_error *err)
{
	struct packer count = { NULL, 0 };
	evrec_reference scratch = *reference;
	evrec_ref *ref;

	if (check_reference(reference, "reference", err) != 0) {
		return NULL;
	}
	pack_reference(&count, &scratch);
	ref = mem_alloc(sizeof(*ref) + count.used);
	if (ref == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	atomic_init(&ref->refs, 1);
	ref->fields = *reference;
	pack_reference(&(struct packer){ (char *)(ref + 1), 0 }, &ref->fields);
	return ref;
}

evrec_ref *evrec_ref_retain(evrec_ref *ref)
{
	atomic_fetch_add_explicit(&ref->refs, 1, memory_order_relaxed);
	return ref;
}

void evrec_ref_release(evrec_ref *ref)
{
	if (ref != NULL && atomic_fetch_sub(&ref->refs, 1) == 1) {
		mem_free(ref);
	}
}

const evrec_reference *evrec_ref_fields(const evrec_ref *ref)
{
	return &ref->fields;
}
