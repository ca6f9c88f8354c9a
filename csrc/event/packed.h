/*
 * packed.h - an event in one run of bytes, which memcpy copies. It takes half the memory of an evrec_event. Most of its
 * strings are the text of its keys, which a recording call has at hand. Pure. Any thread.
 */
#ifndef EVREC_PACKED_H
#define EVREC_PACKED_H

#include "event/key.h"

#pragma GCC visibility push(hidden)

struct packed;

/* An event that is about to be packed: `size` bytes. Borrows. */
struct packing {
	const evrec_fields *event;
	const struct keys *keys;
	size_t size, keys_len;
	uint32_t has;
};

/* `keys` are the event's own, but for the note, which may be another one. NULL: they are not at hand. */
struct packing packed_plan(const evrec_fields *event, const struct keys *keys);
/* The packed event, in packing->size bytes at `memory`, which is aligned for pointers and 64-bit numbers. */
struct packed *packed_make(void *memory, const struct packing *packing);
size_t packed_size(const struct packed *packed);
/* Another one of the same event, in packed_size bytes at `memory`, aligned likewise. */
struct packed *packed_copy(void *memory, const struct packed *packed);
/* Sets all fields. Strings and arrays lie in the packed event. */
void packed_get_fields(const struct packed *packed, evrec_fields *event);
/* Sets the strings and arrays alone, or the numbers: times and counts. */
void packed_get_strings(const struct packed *packed, evrec_fields *event);
void packed_get_numbers(const struct packed *packed, evrec_fields *event);
/* Single fields of a packed event. */
evrec_str packed_namespace(const struct packed *packed);
evrec_str packed_note(const struct packed *packed);
bool packed_has_version(const struct packed *packed); /* resource version */

/*
 * Appends a packed event as bytes, of which this or another process of the same build of evrec makes one again: in
 * packed_bytes_size bytes at `memory`, aligned likewise. A size of 0, or NULL: the bytes are none of a packed event.
 */
void packed_put_bytes(struct buf *out, const struct packed *packed);
size_t packed_bytes_size(evrec_str bytes);
struct packed *packed_from_bytes(void *memory, evrec_str bytes);

#pragma GCC visibility pop

#endif
