/* unit.h - included by all C tests: cmocka with the headers that it needs, random numbers, time, and two small waits. */
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
#define SOON (20 * EVREC_SECOND)                /* more than any machine needs: a test that waits so long has failed */

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN true
#elif defined(__has_feature)
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define UNDER_TSAN false
#endif

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN true
#elif defined(__has_feature)
#define UNDER_ASAN __has_feature(address_sanitizer)
#else
#define UNDER_ASAN false
#endif

#define assert_str(s, literal) assert_true(str_eq((s), EVREC_STR(literal)))

/* $EVREC_SEED, or a new seed. Prints it, so that a failure can be repeated. */
uint64_t unit_seed(void);

/* The next number of a splitmix64 generator; `state` is its seed at first. */
uint64_t unit_random(uint64_t *state);

/* Nanoseconds of the monotonic clock, as deadlines of evrec's functions are. */
int64_t unit_mono(void);

/* Waits for a forked child to end. Returns its status as waitpid gives it. */
int unit_wait(pid_t child);

/* Fails the test unless `text` contains `part`. */
void unit_check_contains(const char *text, const char *part);

/*
 * An allocator for evrec_set_allocator, with a struct unit_allocator as its context: it counts allocations, and fails
 * number `fail_at` (from 1; 0: none). For one thread.
 */
struct unit_allocator {
	size_t calls, fail_at;
};

void *unit_realloc(void *ctx, void *block, size_t size);

#endif
