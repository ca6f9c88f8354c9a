/*
 * terminal.h - about terminals, signals, standard input, the kinds of files and time, for the command `evrec`, because Lua
 * itself has nothing of it.
 */
#ifndef EVREC_LUA_TERMINAL_H
#define EVREC_LUA_TERMINAL_H

#include <lua.h>

#pragma GCC visibility push(hidden)

/* Lua: core.is_terminal(descriptor) -> boolean */
int terminal_is(lua_State *L);

/*
 * Lua: core.show_progress([line]). Writes a line of ASCII without its end to standard error, in place of the one before, cut
 * at the terminal's width; without a line clears that.
 */
int terminal_show_progress(lua_State *L);

/*
 * Lua: core.hold_streams(). If standard input, output or error is closed, no file of the command gets its number: else a
 * message would be written into that file. It still fails to read or write such a stream.
 */
int terminal_hold_streams(lua_State *L);

/*
 * Lua: core.end_by_signals(). From now on SIGINT and SIGPIPE clear the line of progress and end the process at once, without
 * a message; a signal that the process ignores stays ignored.
 */
int terminal_end_by_signals(lua_State *L);

/*
 * Lua: core.next_line([seconds]) -> the next line of standard input, without its line feed and a carriage return before
 * it; false if no line came to its end within the seconds (a line that comes in pieces may take longer); nil at the end,
 * with a message if reading failed. The last line needs no line feed. Without `seconds` nothing is read: the result is a
 * line that was read before, also one whose end has not come. A line is cut after 65,536 bytes. For one thread; nothing
 * else may read standard input.
 */
int terminal_next_line(lua_State *L);

/*
 * Lua: core.file_at(path) -> the kind of the file that the path leads to, "file", "folder", "device", "pipe" or "socket", and
 * a text that is equal for two paths to one file; nil if there is none.
 */
int terminal_file_at(lua_State *L);

/* Lua: core.monotonic() -> seconds of CLOCK_MONOTONIC, which nobody sets: for waits. */
int terminal_monotonic(lua_State *L);

/* Lua: core.pause(seconds). Returns early after a signal whose handler returns. */
int terminal_pause(lua_State *L);

#pragma GCC visibility pop

#endif
