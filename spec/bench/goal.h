/*
 * goal.h - a line for each goal of the store's programs.
 */
#ifndef EVREC_BENCH_GOAL_H
#define EVREC_BENCH_GOAL_H

#include <stdbool.h>
#include <stdio.h>

/* Prints a goal, the measured value, and whether the goal is met. */
static inline void goal(const char *name, const char *wanted, double value, const char *unit, bool met)
{
	(void)printf("  %-56s %-16s %8.2f %-2s  %s\n", name, wanted, value, unit, met ? "met" : "NOT met");
}

#endif
