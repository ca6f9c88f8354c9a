/*
 * packed.h - an event in one run of bytes, which memcpy copies. It takes less than half the memory of an evrec_event.
 * Most of its strings are the text of its keys, which a recording call has already made. Pure. Any thread.
 */
#ifndef EVREC_PACKED_H
#define EVREC_PACKED_H

#include "event/key.h"

#pragma GCC visibility push(hidden)

/* An event that is about to be packed: `size` bytes. Borrows. */
struct packing {
	const evrec_fields *event;
	const struct keys *keys;
	size_t size, keys_len;
	uint32_t has;
};

/* `keys` are the event's own, except for the note, which may differ. NULL: there are none. */
struct packing packed_plan(const evrec_fields *event, const struct keys *keys);
/* The packed event, in packing->size bytes at `memory`, which is aligned for pointers and 64-bit numbers. */
evrec_packed *packed_make(void *memory, const struct packing *packing);
size_t packed_size(const evrec_packed *packed);
/* A copy of the packed event, in packed_size bytes at `memory`, aligned likewise. */
evrec_packed *packed_copy(void *memory, const evrec_packed *packed);
/* Sets the strings and arrays, which lie in the packed event, or the numbers: times and counts. */
void packed_get_strings(const evrec_packed *packed, evrec_fields *event);
void packed_get_numbers(const evrec_packed *packed, evrec_fields *event);
void packed_set_numbers(evrec_packed *packed, const evrec_fields *event);
/* Single fields of a packed event. */
evrec_str packed_namespace(const evrec_packed *packed);
evrec_str packed_note(const evrec_packed *packed);
bool packed_has_version(const evrec_packed *packed); /* resource version */

/*
 * packed_put_bytes appends a packed event as bytes, from which this or another process of the same build of evrec makes
 * a packed event again: in packed_bytes_size bytes at `memory`, aligned likewise. A size of 0, or NULL: the bytes are
 * not a packed event.
 */
void packed_put_bytes(struct buf *out, const evrec_packed *packed);
size_t packed_bytes_size(evrec_str bytes);
evrec_packed *packed_from_bytes(void *memory, evrec_str bytes);

#pragma GCC visibility pop

#endif
