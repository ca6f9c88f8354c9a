#define _GNU_SOURCE /* pipe2, posix_spawn_file_actions_addclosefrom_np, POSIX_SPAWN_SETSID, strerror_r */

#include "exec/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((size_t)16384)
/*
 * The poll interval: if a command ends while a process that it started keeps the pipes open, no descriptor becomes
 * ready.
 */
#define LOOK (EVREC_SECOND / 20)
#define LOOK_AT_END (EVREC_SECOND / 500) /* it has closed its pipes */
#define STOP_TURNS 50
#define STOP_TURN (EVREC_SECOND / 1000)

/* ---- starting ---- */

static void close_end(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
	}
	*fd = -1;
}

/* A descriptor above standard error, which the command's own ones cannot overwrite. Closes `fd`. -1: there is none. */
static int move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int error = errno;

	(void)close(fd);
	errno = error;
	return moved;
}

/* Both ends are closed by exec; reading does not block. False, with errno: there is no pipe. */
static bool open_pipe(int ends[2])
{
	int error;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		ends[0] = ends[1] = -1;
		return false;
	}
	ends[0] = move_up(ends[0]);
	error = errno;
	ends[1] = move_up(ends[1]);
	if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
		return true;
	}
	error = ends[0] < 0 ? error : errno;
	close_end(&ends[0]);
	close_end(&ends[1]);
	errno = error;
	return false;
}

static int set_descriptors(posix_spawn_file_actions_t *actions, int out, int err)
{
	int error;

	if ((error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) != 0 ||
	    (error = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO)) != 0 ||
	    (error = posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO)) != 0) {
		return error;
	}
	return posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
}

/* The sender's thread blocks all signals, and the host may ignore some: the command shall do neither. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int error;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	if ((error = posix_spawnattr_setsigdefault(attributes, &all)) != 0 ||
	    (error = posix_spawnattr_setsigmask(attributes, &none)) != 0) {
		return error;
	}
	return posix_spawnattr_setflags(attributes,
	                                POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
}

/* An errno, 0: `*pid` is the command. */
static int spawn(const struct process_command *command, int out, int err, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0) {
		return error;
	}
	error = posix_spawnattr_init(&attributes);
	if (error == 0) {
		if ((error = set_descriptors(&actions, out, err)) == 0 && (error = set_signals(&attributes)) == 0) {
			error = posix_spawn(pid, command->path, &actions, &attributes, command->argv, command->envp);
		}
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int start_failed(int error, evrec_error *err)
{
	char text[64];

	return error_set(err, EVREC_ESYSTEM, "cannot be started: %s", strerror_r(error, text, sizeof(text)));
}

int process_start(struct process *p, const struct process_command *command, int64_t now, evrec_error *err)
{
	int out[2], errors[2], error;

	if (!open_pipe(out)) {
		return start_failed(errno, err);
	}
	if (!open_pipe(errors)) {
		error = errno;
		close_end(&out[0]);
		close_end(&out[1]);
		return start_failed(error, err);
	}
	error = spawn(command, out[1], errors[1], &p->pid);
	close_end(&out[1]);
	close_end(&errors[1]);
	if (error != 0) {
		p->pid = 0;
		close_end(&out[0]);
		close_end(&errors[0]);
		return start_failed(error, err);
	}
	buf_free(&p->output);
	*p = (struct process){ .runs = true, .pid = p->pid, .out = out[0], .err = errors[0] };
	p->deadline = now + PROCESS_TIME_MAX;
	return 0;
}

/* ---- reading ---- */

static void put_line(struct process *p, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r') {
			p->line_ended = true;
			continue;
		}
		if (p->line_ended) {
			p->line_ended = false;
			p->line_len = 0;
		}
		p->line_cut = p->line_len == sizeof(p->line);
		if (!p->line_cut) {
			p->line[p->line_len++] = data[i];
		}
	}
}

/* Reads until the pipe is empty or closed, or the limit is exceeded. */
static void read_end(struct process *p, int *fd)
{
	char chunk[CHUNK];
	ssize_t n = 1;

	while (*fd >= 0 && p->received <= PROCESS_BYTES_MAX) {
		n = read(*fd, chunk, sizeof(chunk));
		if (n > 0) {
			p->received += (size_t)n;
			if (fd == &p->out) {
				buf_put(&p->output, chunk, (size_t)n);
			} else {
				put_line(p, chunk, (size_t)n);
			}
		} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
			close_end(fd);
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

static void read_ends(struct process *p)
{
	read_end(p, &p->out);
	read_end(p, &p->err);
}

/* ---- the end ---- */

/* Does not block: a killed command may be in an uninterruptible call, such as a read from a hanging disk. */
static void reap_killed(struct process *p)
{
	pid_t pid = p->pid == 0 ? -1 : waitpid(p->pid, NULL, WNOHANG);

	if (p->pid != 0 && pid != 0 && (pid > 0 || errno != EINTR)) {
		p->pid = 0;
	}
}

static void end(struct process *p, enum process_end how, int status)
{
	p->runs = false;
	p->line_cut = p->line_cut || how == PROCESS_LONG;
	p->end = how;
	p->status = status;
	close_end(&p->out);
	close_end(&p->err);
}

/*
 * Kills the command and what it has started. Only a child that is not reaped yet is killed, as its number cannot belong
 * to another process.
 */
static void kill_all(struct process *p, enum process_end how)
{
	reap_killed(p);
	if (p->pid != 0) {
		(void)kill(-p->pid, SIGKILL);
	}
	end(p, how, SIGKILL);
	reap_killed(p);
}

static void look_for_end(struct process *p)
{
	int status = 0;
	pid_t pid = waitpid(p->pid, &status, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR)) {
		return;
	}
	p->pid = 0;
	read_ends(p); /* what it wrote since the last look */
	if (p->received > PROCESS_BYTES_MAX) {
		end(p, PROCESS_LONG, 0);
	} else if (p->output.failed) {
		end(p, PROCESS_NO_MEMORY, 0);
	} else if (pid < 0) {
		end(p, PROCESS_REAPED, 0);
	} else if (WIFEXITED(status)) {
		end(p, PROCESS_EXITED, WEXITSTATUS(status));
	} else {
		end(p, PROCESS_SIGNALED, WTERMSIG(status));
	}
}

bool process_step(struct process *p, int64_t now)
{
	if (!p->runs) {
		reap_killed(p);
		return true;
	}
	read_ends(p);
	if (p->received > PROCESS_BYTES_MAX) {
		kill_all(p, PROCESS_LONG);
	} else if (p->output.failed) {
		kill_all(p, PROCESS_NO_MEMORY);
	} else {
		look_for_end(p);
		if (p->runs && now >= p->deadline) {
			kill_all(p, PROCESS_LATE);
		}
	}
	return !p->runs;
}

bool process_is_dying(const struct process *p)
{
	return !p->runs && p->pid != 0;
}

size_t process_descriptors(const struct process *p, int fds[2])
{
	size_t n = 0;

	if (p->runs && p->out >= 0) {
		fds[n++] = p->out;
	}
	if (p->runs && p->err >= 0) {
		fds[n++] = p->err;
	}
	return n;
}

int64_t process_next_step(const struct process *p, int64_t now)
{
	int64_t look = p->runs && p->out < 0 && p->err < 0 ? LOOK_AT_END : LOOK;

	if (p->pid == 0) {
		return INT64_MAX;
	}
	return p->runs && p->deadline - now < look ? p->deadline : now + look;
}

void process_stop(struct process *p)
{
	const struct timespec moment = { 0, STOP_TURN };

	if (p->runs) {
		kill_all(p, PROCESS_LATE);
	}
	for (int turn = 0; turn < STOP_TURNS && p->pid != 0; turn++) {
		(void)nanosleep(&moment, NULL);
		reap_killed(p);
	}
	buf_free(&p->output);
}
