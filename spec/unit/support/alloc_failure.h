/*
 * alloc_failure.h - runs a scenario again and again, and each time lets another allocation fail: the first, the second,
 * and so on until none is left; once the n-th alone, once the n-th and all after it.
 *
 *   static void scenario(void)
 *   {
 *           evrec_error err = { 0 };
 *           evrec_clock *clock;
 *
 *           alloc_failure_arm();
 *           clock = evrec_clock_fake(T0);
 *           alloc_failure_check(clock != NULL);
 *           ...
 *           alloc_failure_disarm();
 *           (no allocation fails any more)
 *   }
 *
 * A scenario frees all that it allocates: a leak fails the test. So does a closed standard input. The state is global,
 * because libcurl's and jansson's allocation functions have no context. Any thread may allocate; the functions below are
 * for the test's thread.
 */
#ifndef EVREC_UNIT_ALLOC_FAILURE_H
#define EVREC_UNIT_ALLOC_FAILURE_H

#include "unit.h"

/* Runs `scenario`, which makes `least` allocations at least: this finds a scenario that skips its calls. */
void alloc_failure_run(void (*scenario)(void), size_t least);

/* From here on allocations fail, or no longer do. A scenario begins disarmed. */
void alloc_failure_arm(void);
void alloc_failure_disarm(void);

/* Fails the test if a call failed although no allocation has since the last check. */
void alloc_failure_check(bool succeeded);

/* The same for a call that fills in `err`: it must be EVREC_ENOMEM with a message. Clears `err`. */
void alloc_failure_check_error(bool succeeded, evrec_error *err);

/* Counts failures until now as checked: for a call that succeeds or fails without telling. */
void alloc_failure_ignore(void);

/* Lets jansson's own allocations fail too; call it once, before jansson is used. */
void alloc_failure_hook_jansson(void);

/* For other libraries' allocation functions: counts a call, and returns true if it has to fail. */
bool alloc_failure_is_due(void);

/* realloc and free that count blocks and never fail. The caller owns the block. */
void *alloc_failure_take(void *block, size_t size);
void alloc_failure_free(void *block);

#endif
