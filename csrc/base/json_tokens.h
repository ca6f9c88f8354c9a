/*
 * json_tokens.h - goes through a text of JSON (RFC 8259) token by token. Pure. One thread at a time.
 *
 * Any function returns false if the text is no JSON, if there is no memory, or if the text has a feature that is rare
 * in events: \u escapes, fractions, deeply nested values. All functions but json_take_key skip white space before a
 * token.
 */
#ifndef EVREC_JSON_TOKENS_H
#define EVREC_JSON_TOKENS_H

#include "base/json_room.h"

#pragma GCC visibility push(hidden)

struct json_tokens {
	const char *at, *end;   /* the rest of the text */
	struct json_room *room; /* for strings with escapes; the others are borrowed from the text */
};

/* The first byte of the next token; NUL: the end of the text, or a NUL byte, which begins no token. */
static inline char json_next_byte(struct json_tokens *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t' || *t->at == '\r')) {
		t->at++;
	}
	if (t->at == t->end) {
		return '\0';
	}
	return *t->at;
}

/* Takes this byte if it is the next one. */
static inline bool json_take(struct json_tokens *t, char byte)
{
	if (json_next_byte(t) != byte) {
		return false;
	}
	t->at++;
	return true;
}

bool json_take_string(struct json_tokens *t, evrec_str *text);
/* Takes a key and its colon if they are the next bytes, as in texts without white space. Else takes nothing. */
bool json_take_key(struct json_tokens *t, evrec_str key);
bool json_begins_number(char byte);
bool json_take_integer(struct json_tokens *t, int64_t *number);

/* Moves to the next value of an object or array whose first bracket was taken. */
enum json_step { JSON_STEP_VALUE, JSON_STEP_END, JSON_STEP_BROKEN };
enum json_step json_next_element(struct json_tokens *t, char close, bool first);
/* Moves to the next member of an object, and takes its key. */
enum json_step json_next_member(struct json_tokens *t, bool first, evrec_str *key);

/* Skips a value. `depth`: the number of skipped objects and arrays around it. */
bool json_skip_value(struct json_tokens *t, unsigned depth);
/* Skips the rest of an object or array, and counts its values. */
bool json_skip_rest(struct json_tokens *t, char close, unsigned depth, size_t *n);

#pragma GCC visibility pop

#endif
