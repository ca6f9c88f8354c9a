/*
 * event_log.h - remembers how often each event was seen, and its name on the server (client-go's eventLogger).
 * Pure: the caller passes the time. One thread at a time.
 */
#ifndef EVREC_EVENT_LOG_H
#define EVREC_EVENT_LOG_H

#include "correlate/observed.h"
#include "correlate/origins.h"

#pragma GCC visibility push(hidden)

struct event_log {
	struct lru *cache; /* event key or aggregate key -> struct observation */
	struct buf name;   /* the name of a new event, until its entry holds it */
	struct buf text;   /* the next text of an entry, while it is built */
	int64_t last_due;  /* the latest time that event_log_schedule has returned */
};

/* False: no memory. event_log_destroy is fine then too. */
bool event_log_create(struct event_log *l, size_t cache_size);
void event_log_destroy(struct event_log *l);

/*
 * Counts an event by its key. Sets the name, resource version, first timestamp, count and handle in *observed to those
 * of the key's entry; the strings are valid until the next call. A new event gets a name if it has none, and a count of
 * at least 1. Sets *known to whether the event was seen before. False: no memory. If another process has recorded the
 * event (`origin` is not NULL), it may be counted already: then sets observed->repeated, and observed->skip to its
 * value at that time.
 */
bool event_log_observe(struct event_log *l, struct key *key, const struct origin *origin, struct observed *observed,
                       int64_t now, bool *known);
/*
 * When the occurrence that was observed just now is to be written: 0: at once, or the time until which its write is
 * deferred. Writes of an entry are at least `min_interval` ns apart: an occurrence within that time of the last write
 * is due at its end, together with all others until then. So each is written within `min_interval`, unless the clock is
 * set back meanwhile. A state has no such times: after a restart the first occurrence of an event is due at once.
 */
int64_t event_log_schedule(struct event_log *l, uint64_t handle, int64_t now, int64_t min_interval);
/* The deferred write of the entry (0: of each one) is written at `now`, before its time, or was not deferred after all. */
void event_log_released(struct event_log *l, uint64_t handle, int64_t now);
/* The write was not taken: the next occurrence is to be written at once. Does nothing if the entry was evicted. */
void event_log_refused(struct event_log *l, uint64_t handle);
/* Notes the origin of an occurrence that was observed just now. */
void event_log_note(struct event_log *l, uint64_t handle, const struct origin *origin, bool limited);
/* As origins_tell and origins_acknowledge. Both do nothing if the entry was evicted. */
void event_log_tell(struct event_log *l, uint64_t handle, uint64_t connection, bool limited, uint32_t n,
                    uint64_t batch);
void event_log_acknowledge(struct event_log *l, uint64_t handle, uint64_t connection, bool limited, uint32_t n);
/*
 * The handle of the next entry, from *place on (first 0), with occurrences that came over this connection and may be
 * recorded again. 0: there is none.
 */
uint64_t event_log_next_of(const struct event_log *l, uint64_t connection, uint32_t *place);
/* The same for origins_is_to_reconnect; and origins_reconnect, which does nothing if the entry was evicted. */
uint64_t event_log_next_to_reconnect(const struct event_log *l, const struct origin *from, uint32_t *place);
void event_log_reconnect(struct event_log *l, uint64_t handle, const struct origin *from);
/*
 * The process of this connection does not record the entry's occurrences again. Does nothing if the entry was evicted.
 */
void event_log_leave(struct event_log *l, uint64_t handle, uint64_t connection);
/*
 * Takes the server's answer about an entry, at any later time: sets the name, unless that is empty, and the resource
 * version. Both may be strings that event_log_observe returned. Does nothing if the entry was evicted.
 */
void event_log_answered(struct event_log *l, uint64_t handle, evrec_str name, evrec_str resource_version);

/*
 * Takes the server's answer as a whole event (client-go's updateState): updates the entry that has its name, or else
 * the entry of its event key. An aggregate is found only by its name, as it was observed by its aggregate key. Never
 * lowers a count. Strings may be those that event_log_observe returned. False: no memory.
 */
bool event_log_update(struct event_log *l, struct key *event_key, const evrec_fields *event);

/*
 * A process that was killed had counted `own` occurrences of this event, before or after its last state, that it or an
 * owner before it had recorded itself. Adds those that are missing to the entry with the event's name; if no entry has
 * that name or the event key, makes one. *handle is the entry's, 0 if nothing was done. False: no memory.
 */
bool event_log_recover(struct event_log *l, struct key *event_key, const evrec_fields *event, int32_t own,
                       uint64_t *handle);

/*
 * For state.h: appends the value of an entry to `out`, false if the entry has none yet; sets an entry to it, or makes one.
 */
bool event_log_save(const void *value, struct buf *out);
enum restored event_log_restore(struct event_log *l, struct key *key, evrec_str value);

#pragma GCC visibility pop

#endif
