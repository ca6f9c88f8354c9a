/*
 * message.h - messages of a bounded length, for people.
 */
#ifndef EVREC_LUA_MESSAGE_H
#define EVREC_LUA_MESSAGE_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* As snprintf, but a message that does not fit is cut between two characters of UTF-8. */
void message_format(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#pragma GCC visibility pop

#endif
