/* library.h - a shared library that is loaded at its first use, and never unloaded. */
#ifndef EVREC_LIBRARY_H
#define EVREC_LIBRARY_H

#include "base/base.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct library_function {
	const char *name;
	void **to;     /* of the pointer to the function */
	bool optional; /* the library and its dependencies may lack the function: then the pointer is NULL */
};

struct library {
	const char *title;        /* for messages */
	const char *const *files; /* file names for dlopen; the first that loads is used; NULL ends them */
	const struct library_function *functions; /* `n` of them */
	size_t n;
	atomic_bool is_loaded;
};

/*
 * Loads the library, and sets the pointers to its functions. Idempotent; any thread, and not between fork_lock_enter
 * and fork_lock_leave. False: EVREC_ESYSTEM; another call tries again.
 */
bool library_load(struct library *library, evrec_error *err);

#pragma GCC visibility pop

#endif
