/*
 * key.h - the three keys an event is known by (semantics 2). Pure. A struct keys belongs to whoever holds it.
 *
 * Every part is written with its length before it, so that no two lists of parts give the same bytes; where keys of
 * different make share a cache, a byte that tells them apart stands in between. What all three begin with is written,
 * and hashed, once.
 */
#ifndef EVREC_KEY_H
#define EVREC_KEY_H

#include "base/lru.h"

#pragma GCC visibility push(hidden)

#define KEY_PARTS 13

/* The source, the reference without its field path, and the type are the head of each. All zero is none yet. */
struct keys {
	struct key aggregate; /* tail: 'a', reason, reporting controller and instance */
	struct key event;     /* tail: 'e', field path, reason, message */
	struct key spam;
	struct buf text;         /* where they lie */
	evrec_str at[KEY_PARTS]; /* and where each part does in there */
	bool made;
};

/*
 * True where the keys in there are those of `event`: what is part of a key is just as it was when they were made. An
 * event that comes again and again is known by this, without a hash or a search.
 */
bool keys_are_of(const struct keys *keys, const evrec_fields *event);
/* The same where component, host, reporting controller and instance are known to be those that they were made of. */
bool keys_are_of_same_source(const struct keys *keys, const evrec_fields *event);
/* Makes all three; false: no memory. Reuses what `keys` holds. */
bool keys_make(struct keys *keys, const evrec_fields *event);
void keys_free(struct keys *keys);

/* The fields that are part of it, from the text of an aggregate's key; they lie in there. */
void keys_split_aggregate(evrec_str text, evrec_suppressed *what);

/* A key that a callback chose, in a form that no key made here can have; it lies in `out`. False: no memory. */
bool key_custom(struct key *key, struct buf *out, evrec_str chosen);
/* What was chosen, from the text of such a key. False: it is another. */
bool key_split_custom(evrec_str text, evrec_str *chosen);

#pragma GCC visibility pop

#endif
