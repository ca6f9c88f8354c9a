/*
 * packed_inner.h - the bytes of a packed event, for the files that implement it.
 *
 *   packed.c         makes and reads them
 *   packed_bytes.c   checks bytes that come from a file
 */
#ifndef EVREC_PACKED_INNER_H
#define EVREC_PACKED_INNER_H

#include "event/packed.h"

#pragma GCC visibility push(hidden)

/*
 * After the struct lie, in this order: the arrays of labels, annotations and owners, which are aligned; the text of the
 * keys; the strings that this text lacks, by the bits of `has`, each after its length; the strings of the arrays, which
 * point to them.
 */
struct evrec_packed {
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
	NOTE,      /* if it is not the note of the keys */
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

static inline size_t packed_arrays_size(const evrec_packed *packed)
{
	return (packed->labels + (size_t)packed->annotations) * sizeof(evrec_pair) +
	       packed->owners * sizeof(evrec_owner);
}

static inline const char *packed_keys(const evrec_packed *packed)
{
	return packed->bytes + packed_arrays_size(packed);
}

/* Calls `func` for each string of the labels, annotations and owners, until it returns false. */
bool packed_each_string(const evrec_packed *packed, bool (*func)(void *ctx, evrec_str *string), void *ctx);
/* For packed_each_string: moves the string's pointer by the uintptr_t at `ctx`. */
bool packed_move_string(void *ctx, evrec_str *string);

#pragma GCC visibility pop

#endif
