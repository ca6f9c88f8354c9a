/* counting_allocator.h - an allocator that says how much memory is in use: for tests of how much something takes. */
#ifndef EVREC_UNIT_COUNTING_ALLOCATOR_H
#define EVREC_UNIT_COUNTING_ALLOCATOR_H

#include "unit.h"

/* The test owns it, and passes it to evrec_set_allocator with counting_realloc. For one thread. */
struct counting_allocator {
	size_t calls; /* allocations */
	size_t live;  /* bytes in use, with malloc's rounding */
};

void *counting_realloc(void *ctx, void *block, size_t size);

#endif
