/*
 * account.h - an allocator that keeps account of what is allocated: for tests of how much memory something takes.
 */
#ifndef EVREC_ACCOUNT_H
#define EVREC_ACCOUNT_H

#include "unit.h"

#include <malloc.h>

/* What is allocated now, and how often something was. */
struct account {
	size_t calls, live;
};

static inline void *account_realloc(void *ctx, void *block, size_t size)
{
	struct account *account = ctx;

	account->live -= malloc_usable_size(block);
	if (size == 0) {
		free(block);
		return NULL;
	}
	account->calls++;
	block = realloc(block, size);
	account->live += malloc_usable_size(block);
	return block;
}

#endif
