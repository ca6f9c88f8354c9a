/* file_limit.h - lets no file of this process grow beyond a size, as a full disk does, and counts SIGXFSZ. */
#ifndef EVREC_UNIT_FILE_LIMIT_H
#define EVREC_UNIT_FILE_LIMIT_H

#include "unit.h"

#include <signal.h>
#include <sys/resource.h>

static volatile sig_atomic_t file_limit_signals; /* SIGXFSZ, after file_limit_count_signals */

/* RLIM_INFINITY: as far as the process may. */
static inline void file_limit_set(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline void file_limit_on_signal(int signal)
{
	file_limit_signals += signal == SIGXFSZ;
}

/* Counts from 0, until signal(SIGXFSZ, SIG_DFL). */
static inline void file_limit_count_signals(void)
{
	file_limit_signals = 0;
	(void)signal(SIGXFSZ, file_limit_on_signal);
}

#endif
