/*
 * tiers.h - an array that grows without moving its elements: it consists of tiers, each with TIERS_FIRST more elements
 * than all tiers before it together. Not locked.
 */
#ifndef EVREC_TIERS_H
#define EVREC_TIERS_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define TIERS_FIRST 16
#define TIERS_LOG_FIRST 4
#define TIERS_MAX (32 - TIERS_LOG_FIRST)

/* All zero is an empty array. */
struct tiers {
	char *of[TIERS_MAX];
	size_t room; /* elements */
};

/* An element of `size` bytes; i < room. */
static inline void *tiers_at(const struct tiers *t, size_t i, size_t size)
{
	const uint32_t n = (uint32_t)i + TIERS_FIRST;
	const unsigned log = 31 - (unsigned)__builtin_clz(n);

	return t->of[log - TIERS_LOG_FIRST] + (n - (UINT32_C(1) << log)) * size;
}

/* The number of elements of the next tier; the array has at most `max` in all. */
size_t tiers_next(const struct tiers *t, size_t max);
/* Adds the next tier, as memory for all its elements of `size` bytes. False: no memory, or `max` is reached. */
bool tiers_grow(struct tiers *t, size_t size, size_t max);
/* Adds the next tier in memory that the caller has allocated, for the tiers_next elements. Owns it from now on. */
void tiers_add(struct tiers *t, void *memory, size_t elements);
void tiers_free(struct tiers *t);

#pragma GCC visibility pop

#endif
