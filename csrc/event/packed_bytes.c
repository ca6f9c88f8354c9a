#include "event/packed_inner.h"

/* Writes the packed event's address before it, as the strings of its arrays are absolute pointers. */
void packed_put_bytes(struct buf *out, const evrec_packed *packed)
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
	return bytes.len < sizeof(uintptr_t) + sizeof(evrec_packed) ? 0 : bytes.len - sizeof(uintptr_t);
}

evrec_packed *packed_from_bytes(void *memory, evrec_str bytes)
{
	evrec_packed *packed = memory;
	struct bounds was;
	uintptr_t distance;
	size_t arrays, left;

	memcpy(&was.start, bytes.data, sizeof(was.start));
	was.size = bytes.len - sizeof(was.start);
	memcpy(packed, bytes.data + sizeof(was.start), was.size);
	arrays = packed_arrays_size(packed);
	left = was.size - sizeof(*packed);
	if (packed->size != was.size || arrays > left || packed->keys_len > left - arrays ||
	    !keys_check_text((evrec_str){ packed_keys(packed), packed->keys_len })) {
		return NULL;
	}
	left -= arrays + packed->keys_len;
	if (!check_extras((evrec_str){ packed_keys(packed) + packed->keys_len, left }, packed->has, &left) ||
	    !packed_each_string(packed, is_within, &was)) {
		return NULL;
	}
	distance = (uintptr_t)packed - was.start;
	(void)packed_each_string(packed, packed_move_string, &distance);
	return packed;
}
