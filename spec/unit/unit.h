/*
 * unit.h - what the C tests share: cmocka with its includes, a reproducible random number, memory that runs out.
 */
#ifndef EVREC_UNIT_H
#define EVREC_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"

#define T0 (INT64_C(1700000000) * EVREC_SECOND) /* 2023-11-14T22:13:20Z */

#define assert_str(s, literal) assert_true(str_eq((s), EVREC_STR(literal)))

/* EVREC_SEED, or a new one; printed, so that a failure can be had again. */
static inline uint64_t unit_seed(void)
{
	const char *text = getenv("EVREC_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)evrec_clock_now(evrec_clock_real());

	print_message("EVREC_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* Waits for a forked child; its status, as of waitpid. */
static inline int unit_wait(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* splitmix64 */
static inline uint64_t unit_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* An allocator that counts, and fails once, at allocation number `fail_at` (from 1; 0: never). */
struct unit_memory {
	size_t calls, fail_at;
};

static inline void *unit_realloc(void *ctx, void *block, size_t size)
{
	struct unit_memory *memory = ctx;

	if (size == 0) {
		free(block);
		return NULL;
	}
	return ++memory->calls == memory->fail_at ? NULL : realloc(block, size);
}

#endif
