/*
 * key.h - the three keys of an event, which are those of client-go's EventAggregatorByReasonFunc, getEventKey and
 * getSpamKey. Pure. A struct keys is for one thread at a time.
 *
 * Every part of a key follows its length, so that different lists of parts have different bytes. Aggregate keys and
 * event keys share the event log's cache, so the first byte of their tail tells them apart. The three keys share their
 * head, which is written and hashed once.
 */
#ifndef EVREC_KEY_H
#define EVREC_KEY_H

#include "base/lru.h"

#pragma GCC visibility push(hidden)

#define KEY_PARTS 13

/* The head of each key: the source, the reference without its field path, and the type. All zero: no keys yet. */
struct keys {
	struct key aggregate;  /* tail: 'a', reason, reporting controller and instance */
	struct key lazy_event; /* tail: 'e', field path, reason, message; read it by keys_event, which hashes it */
	struct key spam;       /* no tail */
	/* The aggregate key once more: a struct key stores its place in only one cache. */
	struct key combined;     /* in the event log, as the key of the combined event */
	struct key suppressed;   /* in the cache of suppressed events */
	struct buf text;         /* the bytes of all three keys */
	evrec_str at[KEY_PARTS]; /* each part, in `text`, if `made` */
	bool made;               /* keys_make succeeded */
	bool event_hashed;       /* `lazy_event` has its hash */
};

/*
 * Whether `keys` were made of an event with the same parts as `event`. A repeated event needs neither hash nor search,
 * which saves 1,345 of 2,569 instructions of a duplicate. If only the note differs, keys_change_note makes only the
 * event key anew.
 */
enum keys_match { KEYS_DIFFER, KEYS_OF_OTHER_NOTE, KEYS_MATCH };
enum keys_match keys_match(const struct keys *keys, const evrec_fields *event);
/*
 * The same for an event that is known to have the component, host, reporting controller and instance that `keys` were
 * made of. Not comparing them saves 86 of 1,310 instructions of a duplicate.
 */
enum keys_match keys_match_of_source(const struct keys *keys, const evrec_fields *event);
/* The same for an event that is known to have the reference, too. */
enum keys_match keys_match_of_object(const struct keys *keys, const evrec_fields *event);
/* Makes all three keys, in the memory of the last ones. False: no memory. */
bool keys_make(struct keys *keys, const evrec_fields *event);
/* The same for an event with KEYS_OF_OTHER_NOTE. */
bool keys_change_note(struct keys *keys, const evrec_fields *event);
void keys_free(struct keys *keys);
/*
 * The event key. After keys_change_note it is hashed when it is first asked for, as an event that is combined needs none:
 * that saves 77 of 2,188 instructions and 12 % of the time of a similar event.
 */
struct key *keys_event(struct keys *keys);
/* The note in the keys. */
evrec_str keys_note(const struct keys *keys);
/* Whether the reason in the keys is this one. */
bool keys_have_reason(const struct keys *keys, evrec_str reason);

/*
 * The text of an event's keys, made without a struct keys: its size in bytes, and the text, written to so many bytes.
 */
size_t keys_text_size(const evrec_fields *event);
void keys_put_text(char *to, const evrec_fields *event);
/* Sets the fields that are parts of keys, from a text. The strings lie in the text. Other fields stay as they are. */
void keys_read_text(evrec_str text, evrec_fields *event);
/* Whether untrusted bytes are such a text. */
bool keys_check_text(evrec_str text);

/*
 * Makes the key of an event's series, different from all keys of keys_make, in `out`. Its parts are the tag 's', the
 * type, reason, action (the reason if it is unset), reporting controller and instance, both references without resource
 * version and field path, and with `note` the note. Source component and host are not in the key: events in the new
 * style, which a series takes over from a server, have none. False: no memory.
 */
bool key_series(struct key *key, struct buf *out, const evrec_fields *event, bool note);

/* Sets the fields of *what that are parts of an aggregate key, from its text, in which they lie. */
void keys_split_aggregate(evrec_str text, evrec_suppressed *what);

/*
 * Makes a key of the text that a callback chose, different from all keys of keys_make. The key lies in `out`. False: no
 * memory.
 */
bool key_custom(struct key *key, struct buf *out, evrec_str chosen);
/* Sets *chosen to the text that a callback chose, from the text of a key. False: key_custom did not make the key. */
bool key_split_custom(evrec_str text, evrec_str *chosen);

/*
 * The kind of an entry's key, and the key that a callback chose. `found` is false if the entry was evicted: then the
 * key is known to be the default one only if there is no callback.
 */
enum evrec_key key_kind(bool found, evrec_str text, bool callback, evrec_str *chosen);

#pragma GCC visibility pop

#endif
