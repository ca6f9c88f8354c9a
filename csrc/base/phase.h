/*
 * phase.h - an object's phase: one enum in place of several flags, and a table of the legal steps between its values.
 * The caller holds whatever lock guards the phase.
 *
 * A build with EVREC_DEBUG traps on an illegal step. A normal build takes the step: the core never aborts its host.
 */
#ifndef EVREC_PHASE_H
#define EVREC_PHASE_H

#include <stdbool.h>

/* A phase as a bit: `legal[from]` is a mask of the phases that may follow `from`. */
#define PHASE_BIT(phase) (1U << (phase))

static inline bool phase_may_step(unsigned from, unsigned to, const unsigned legal[])
{
	return (legal[from] & PHASE_BIT(to)) != 0;
}

/* `phase` must be below the length of `legal`, and `to` below 32. */
static inline void phase_step(unsigned *phase, unsigned to, const unsigned legal[])
{
#ifdef EVREC_DEBUG
	if (!phase_may_step(*phase, to, legal)) {
		__builtin_trap();
	}
#else
	(void)legal;
#endif
	*phase = to;
}

#endif
