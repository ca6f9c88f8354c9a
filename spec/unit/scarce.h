/*
 * scarce.h - a scenario run again and again, each time with another allocation failing: the first, the second, and so on
 * until all are had; once the n-th alone, once the n-th and all that come after it.
 *
 *   static void scenario(void)
 *   {
 *           evrec_error err = { 0 };
 *           evrec_clock *clock;
 *
 *           scarce_begin();
 *           clock = evrec_clock_fake(T0);
 *           scarce_check(clock != NULL);
 *           ...
 *           scarce_rest();
 *           (from here on memory is there)
 *   }
 *
 * At the end of a scenario all memory is returned. scarce_jansson: what jansson needs, which has its own, fails too.
 */
#ifndef EVREC_SCARCE_H
#define EVREC_SCARCE_H

#include "unit.h"

#include <jansson.h>
#include <stdatomic.h>

struct scarce {
	size_t fail_at; /* 0: never */
	bool onwards;
	atomic_bool armed;
	atomic_size_t calls, failures;
	atomic_size_t blocks;   /* not yet freed */
	size_t failures_before; /* the call that is being checked */
};

static struct scarce scarce;

static inline bool scarce_fails(void)
{
	size_t n;

	if (!atomic_load(&scarce.armed)) {
		return false;
	}
	n = atomic_fetch_add(&scarce.calls, 1) + 1;
	if (scarce.fail_at == 0 || (scarce.onwards ? n < scarce.fail_at : n != scarce.fail_at)) {
		return false;
	}
	atomic_fetch_add(&scarce.failures, 1);
	return true;
}

static inline void scarce_free(void *block)
{
	if (block != NULL) {
		atomic_fetch_sub(&scarce.blocks, 1);
		free(block);
	}
}

/* Counted, and never refused. */
static inline void *scarce_take(void *block, size_t size)
{
	void *taken = realloc(block, size == 0 ? 1 : size);

	if (taken == NULL) {
		abort(); /* the machine's own end */
	}
	atomic_fetch_add(&scarce.blocks, block == NULL);
	return taken;
}

static inline void *scarce_realloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		scarce_free(block);
		return NULL;
	}
	return scarce_fails() ? NULL : scarce_take(block, size);
}

static inline void *scarce_malloc(size_t size)
{
	return scarce_realloc(NULL, NULL, size == 0 ? 1 : size);
}

static inline void scarce_jansson(void)
{
	json_set_alloc_funcs(scarce_malloc, scarce_free);
}

static inline void scarce_begin(void)
{
	atomic_store(&scarce.armed, true);
}

static inline void scarce_rest(void)
{
	atomic_store(&scarce.armed, false);
}

/* A call that comes to nothing has met a failure since the check before. */
static inline void scarce_check(bool succeeded)
{
	size_t failures = atomic_load(&scarce.failures);

	assert_true(succeeded || failures > scarce.failures_before);
	scarce.failures_before = failures;
}

/* Likewise for one that says why. */
static inline void scarce_check_error(bool succeeded, evrec_error *err)
{
	scarce_check(succeeded);
	if (!succeeded) {
		assert_int_equal(err->code, EVREC_ENOMEM);
		assert_true(strlen(err->message) > 0);
	}
	*err = (evrec_error){ 0 };
}

static inline void scarce_run_one(void (*scenario)(void), size_t fail_at, bool onwards)
{
	size_t blocks = atomic_load(&scarce.blocks);

	scarce.fail_at = fail_at;
	scarce.onwards = onwards;
	scarce.calls = scarce.failures = scarce.failures_before = 0;
	scenario();
	scarce_rest();
	if (atomic_load(&scarce.blocks) != blocks) {
		fail_msg("allocation %zu%s fails: %zu blocks are leaked", fail_at, onwards ? " and all later" : "",
		         atomic_load(&scarce.blocks) - blocks);
	}
}

/* `least`: so many allocations the scenario makes, so that one which skips everything is seen. */
static inline void scarce_run(void (*scenario)(void), size_t least)
{
	size_t n;
	int onwards;

	evrec_set_allocator(scarce_realloc, NULL);
	scarce_run_one(scenario, 0, false);
	assert_true(scarce.calls >= least);
	for (onwards = 0; onwards <= 1; onwards++) {
		n = 0;
		do {
			scarce_run_one(scenario, ++n, onwards == 1);
		} while (scarce.failures != 0);
		assert_true(n > least / 2);
	}
	evrec_set_allocator(NULL, NULL);
}

#endif
