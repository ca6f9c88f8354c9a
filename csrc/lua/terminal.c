/* strerror_r, of GNU */
#define _GNU_SOURCE

#include "lua/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lua/seconds.h"

#define LINE_MAX_BYTES 65536
#define LONGEST_WAIT (3600 * EVREC_SECOND)

int terminal_is(lua_State *L)
{
	lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
	return 1;
}

/* Whether a line of progress is on standard error. */
static volatile sig_atomic_t progress_shown;

static void clear_progress(void)
{
	static const char clear[] = "\r\033[K";

	if (progress_shown) {
		progress_shown = 0;
		(void)!write(STDERR_FILENO, clear, sizeof(clear) - 1);
	}
}

/* A longer line would go on in the next one, and only that would be cleared. */
static size_t line_max(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? (size_t)size.ws_col - 1 : SIZE_MAX;
}

int terminal_show_progress(lua_State *L)
{
	const char *line;
	size_t len, max;

	if (lua_isnoneornil(L, 1)) {
		clear_progress();
		return 0;
	}
	line = luaL_checklstring(L, 1, &len);
	max = line_max();
	lua_pushlstring(L, line, len < max ? len : max);
	line = lua_pushfstring(L, "\r%s\033[K", lua_tostring(L, -1));
	progress_shown = 1;
	(void)!write(STDERR_FILENO, line, strlen(line));
	return 0;
}

int terminal_hold_streams(lua_State *L)
{
	static const int modes[] = {
		[STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY
	};

	(void)L;
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			(void)open("/dev/null", modes[fd]); /* the least free number, which is fd */
		}
	}
	return 0;
}

/* SA_RESETHAND has given the signal its default action back, which ends the process when the handler returns. */
static void clear_and_end(int signal)
{
	clear_progress();
	(void)raise(signal);
}

/* Replaces the handler by which lua and luajit turn SIGINT into an error with a traceback. */
int terminal_end_by_signals(lua_State *L)
{
	static const int signals[] = { SIGINT, SIGPIPE };
	const struct sigaction end = { .sa_handler = clear_and_end, .sa_flags = (int)SA_RESETHAND };
	struct sigaction now;

	(void)L;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
			(void)sigaction(signals[i], &end, NULL);
		}
	}
	return 0;
}

/* ---- lines of standard input ---- */

/* A process has one standard input. Bytes that were read, but not returned yet, are at [begin, end). */
static struct {
	char data[LINE_MAX_BYTES];
	size_t begin, end;
	bool skips; /* the rest of a line that was too long, up to its line feed */
	bool ended;
} input;

static int push_bytes(lua_State *L, size_t len, size_t taken)
{
	const char *line = input.data + input.begin;

	if (len > 0 && line[len - 1] == '\r') {
		len--;
	}
	lua_pushlstring(L, line, len);
	input.begin += taken;
	return 1;
}

/* Pushes the next line of the buffer: 1; or 0 if there is none: then there is room to read more bytes. */
static int push_buffered(lua_State *L)
{
	while (input.begin < input.end) {
		const size_t len = input.end - input.begin;
		const char *feed = memchr(input.data + input.begin, '\n', len);
		const size_t line = feed != NULL ? (size_t)(feed - (input.data + input.begin)) : len;

		if (input.skips) {
			input.skips = feed == NULL;
			input.begin += line + (feed != NULL);
		} else if (feed != NULL) {
			return push_bytes(L, line, line + 1);
		} else if (len == LINE_MAX_BYTES) {
			input.skips = true;
			return push_bytes(L, len, len);
		} else {
			break;
		}
	}
	memmove(input.data, input.data + input.begin, input.end - input.begin);
	input.end -= input.begin;
	input.begin = 0;
	return 0;
}

static int push_rest(lua_State *L)
{
	if (push_buffered(L) != 0) {
		return 1;
	}
	if (input.end > 0) {
		return push_bytes(L, input.end, input.end);
	}
	lua_pushnil(L);
	return 1;
}

/* Reads once if there is anything within the time. Returns whether it did. *error is set if reading failed. */
static bool read_more(int milliseconds, int *error)
{
	struct pollfd standard_input = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;

	*error = 0;
	if (poll(&standard_input, 1, milliseconds) <= 0) {
		return false;
	}
	n = read(STDIN_FILENO, input.data + input.end, LINE_MAX_BYTES - input.end);
	if (n < 0) {
		*error = errno == EINTR || errno == EAGAIN ? 0 : errno;
		return false;
	}
	input.ended = n == 0;
	input.end += (size_t)n;
	return true;
}

int terminal_next_line(lua_State *L)
{
	const bool may_read = !lua_isnoneornil(L, 1);
	const int64_t wanted = seconds_check(L, 1, "next_line", "seconds", 0);
	const int64_t wait = wanted < LONGEST_WAIT ? wanted : LONGEST_WAIT;
	char text[128];
	int error;

	while (may_read && !input.ended) {
		if (push_buffered(L) != 0) {
			return 1;
		}
		if (!read_more((int)(wait / (EVREC_SECOND / 1000)), &error)) {
			break;
		}
	}
	if (!may_read || input.ended) {
		return push_rest(L);
	}
	if (error != 0) {
		lua_pushnil(L);
		lua_pushstring(L, strerror_r(error, text, sizeof(text)));
		return 2;
	}
	lua_pushboolean(L, 0);
	return 1;
}

/* ---- files ---- */

static const char *file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "folder";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	default:
		return "file";
	}
}

int terminal_file_at(lua_State *L)
{
	char id[64];
	struct stat st;

	if (stat(luaL_checkstring(L, 1), &st) != 0) {
		lua_pushnil(L);
		return 1;
	}
	(void)snprintf(id, sizeof(id), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	lua_pushstring(L, file_kind(st.st_mode));
	lua_pushstring(L, id);
	return 2;
}

/* ---- time ---- */

int terminal_monotonic(lua_State *L)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec / EVREC_SECOND);
	return 1;
}

/* While os.execute runs a program, this process ignores SIGINT. */
int terminal_pause(lua_State *L)
{
	const int64_t ns = seconds_check(L, 1, "pause", "seconds", 0);
	const struct timespec time = { (time_t)(ns / EVREC_SECOND), (long)(ns % EVREC_SECOND) };

	(void)nanosleep(&time, NULL);
	return 0;
}
