#define _GNU_SOURCE /* program_invocation_short_name */

#include "runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void die(const char *message)
{
	(void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
	exit(2);
}

int runner_run(struct trace *trace)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&text, &size, stdin)) > 0) {
		json_t *line = json_loadb(text, (size_t)len, JSON_ALLOW_NUL, NULL), *out;

		if (line == NULL) {
			die("a line is not JSON");
		}
		if (json_object_get(line, "id") == NULL) {
			trace_begin(trace, line);
			out = json_object();
		} else {
			out = trace_step(trace, line);
		}
		json_dumpf(out, stdout, JSON_COMPACT);
		(void)putchar('\n');
		json_decref(out);
		json_decref(line);
	}
	trace_end(trace);
	free(text);
	return 0;
}
