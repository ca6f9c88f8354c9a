/*
 * process.h - runs a command without a shell, and without waiting for it: the owner of a run steps it.
 *
 * The command gets /dev/null as its standard input, two pipes as its output and error, no other descriptor, default
 * signals and a session of its own: it has no terminal, and one kill ends it with all that it has started. A run belongs
 * to one thread at a time, which may be any.
 */
#ifndef EVREC_PROCESS_H
#define EVREC_PROCESS_H

#include "base/base.h"

#include <sys/types.h>

#pragma GCC visibility push(hidden)

#define PROCESS_TIME_MAX (30 * EVREC_SECOND)
#define PROCESS_BYTES_MAX ((size_t)1024 * 1024) /* of output and error together */
#define PROCESS_LINE_MAX ((size_t)160)

enum process_end {
	PROCESS_EXITED,   /* `status` is its exit status */
	PROCESS_SIGNALED, /* `status` is the signal */
	PROCESS_REAPED,   /* other code took its status: the host waits for all children, or ignores SIGCHLD */
	PROCESS_LATE,     /* killed after PROCESS_TIME_MAX */
	PROCESS_LONG,     /* killed after PROCESS_BYTES_MAX */
	PROCESS_NO_MEMORY,
};

/* All zero is no run. */
struct process {
	bool runs;
	pid_t pid;    /* 0: there is no child to reap */
	int out, err; /* read ends, while it runs; -1: the command has closed the other end */
	int64_t deadline;
	size_t received;
	struct buf output;
	/* The last line of its standard error that is not empty. */
	char line[PROCESS_LINE_MAX];
	size_t line_len;
	bool line_ended, line_cut; /* cut: the end of the line is missing */
	/* Once it has ended: */
	enum process_end end;
	int status;
};

/* `argv` and `envp` end with NULL. The command's path has a slash. */
struct process_command {
	const char *path;
	char *const *argv, *const *envp;
};

/*
 * Starts a run; no other may run or be dying. `now` is monotonic. Returns once the child runs the command, and no
 * longer uses this process's memory (vfork). 0, or EVREC_ESYSTEM and the reason: nothing runs, and there is nothing to
 * free.
 */
int process_start(struct process *p, const struct process_command *command, int64_t now, evrec_error *err);
/*
 * Reads what the command has written, and ends the run if the command has ended or one of the limits is reached. Never
 * waits. True: no run is under way.
 */
bool process_step(struct process *p, int64_t now);
/* True: a run was killed, and the command has not ended yet; a later step notices its end. */
bool process_is_dying(const struct process *p);
/* The descriptors that a step reads from; returns how many. */
size_t process_descriptors(const struct process *p, int fds[2]);
/* When a step is due even if there is nothing to read; INT64_MAX: never. */
int64_t process_next_step(const struct process *p, int64_t now);
/* Kills the present run, and frees its output. Waits for the killed process, for a moment at most. */
void process_stop(struct process *p);

#pragma GCC visibility pop

#endif
