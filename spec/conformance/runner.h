/*
 * runner.h - the loop of a program that runs traces: it reads them on standard input, and writes one line for every line
 * that it reads. README.md defines the format of both.
 */
#ifndef EVREC_CONFORMANCE_RUNNER_H
#define EVREC_CONFORMANCE_RUNNER_H

#include <jansson.h>

struct trace; /* the program's own: the trace that it is running; all zero before the first one and after trace_end */

/* The program defines these three. `line` has a trace's options; ends the trace before it. */
void trace_begin(struct trace *trace, const json_t *line);
/* Runs a step; returns the line to be written, which the caller releases. */
json_t *trace_step(struct trace *trace, const json_t *line);
void trace_end(struct trace *trace);

/* Runs all traces; returns the exit code of the program. */
int runner_run(struct trace *trace);
/* Ends the program with a message on standard error. */
_Noreturn void die(const char *message);

#endif
