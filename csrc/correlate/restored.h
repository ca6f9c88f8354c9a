/* restored.h - results and helpers of the functions that restore entries from a state (state.h). */
#ifndef EVREC_RESTORED_H
#define EVREC_RESTORED_H

#include "base/lru.h"

#pragma GCC visibility push(hidden)

enum restored {
	RESTORED,
	RESTORED_NOT, /* the entry has ended, or was removed */
	RESTORED_INVALID,
	RESTORED_NO_MEMORY,
};

/* Takes the next `size` bytes of `*bytes`. False: there are fewer. */
static inline bool restored_take(evrec_str *bytes, void *to, size_t size)
{
	if (bytes->len < size) {
		return false;
	}
	memcpy(to, bytes->data, size);
	bytes->data += size;
	bytes->len -= size;
	return true;
}

#pragma GCC visibility pop

#endif
