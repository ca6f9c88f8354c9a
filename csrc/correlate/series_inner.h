/*
 * series_inner.h - the entries of a series cache, for the files that implement it.
 */
#ifndef EVREC_SERIES_INNER_H
#define EVREC_SERIES_INNER_H

#include "correlate/series.h"
#include "correlate/spam_filter.h"

#pragma GCC visibility push(hidden)

#define NOTES_MAX 16 /* distinct notes of a series that are told apart */

enum series_state {
	STATE_NEW,    /* observed, but without a token: its create is due */
	STATE_SINGLE, /* created; the next observation begins a series */
	STATE_ONGOING,
	STATE_UNKNOWN, /* a series of an earlier process, not observed by this one */
};

struct series_entry {
	evrec_event *event; /* the first occurrence, with its name and event time */
	struct buf note;    /* the last note, if `has_note`; else it is that of `event` */
	int64_t seen;       /* when it was observed last, by the clock */
	int64_t last;       /* the latest timestamp */
	int64_t dropped_at; /* if `dropped` */
	uint64_t release;   /* the `release` of struct series at the last observation */
	uint32_t count;     /* occurrences */
	uint32_t base;      /* occurrences that earlier processes counted */
	uint32_t open;      /* occurrences of `count` whose writes have not ended */
	uint32_t kept;      /* occurrences of `count` that other processes record again if this one is killed */
	uint32_t notes_len;
	uint32_t notes[NOTES_MAX]; /* hashes of distinct notes; none as long as all notes are equal */
	enum series_state state;
	bool has_note;
	bool on_server; /* a write succeeded */
	bool dropped;   /* a write was dropped before any succeeded */
	bool refused;   /* `dropped`: the outbox had no room or no memory for it */
	bool deferred;  /* `dropped`: an occurrence is deferred since */
	bool stale;     /* the last write was dropped, or an earlier process may not have made it */
	bool again;     /* it is to be created, and an earlier process or try may have created it under its name */
	bool partial;   /* `base` lacks the occurrences that other processes kept */
	bool finishes; /* the deferred write will say that the series is finished, unless the write is released early */
};

struct series {
	evrec_series_options options;
	evrec_correlator_options limits;
	struct lru *cache; /* series key -> struct series_entry; in the order of `seen` */
	struct spam_filter spam_filter;
	int64_t start;         /* the ticks count from here */
	int64_t now;           /* the time of the last call */
	uint64_t release;      /* how often all deferred writes were released */
	struct buf key;        /* the bytes of a series key */
	struct buf name;       /* a new event's name */
	struct key custom_key; /* the key that a callback chose last */
	struct buf custom;     /* the bytes of custom_key */
	uint64_t callback_errors;
	series_tell_func *tell;
	void *ctx;
	bool busy;                        /* a function is running: a callback must not enter again */
	bool for_others;                  /* other processes keep the observed occurrences */
	const struct series_watch *watch; /* NULL: none */
	evrec_series_stats stats;
};

/* series_enter and series_leave enclose a change. False: called from inside a callback, nothing may be changed. */
static inline bool series_enter(struct series *s)
{
	if (!s->busy && s->watch != NULL) {
		s->watch->begin(s->watch->ctx);
	}
	return !s->busy;
}

static inline void series_leave(struct series *s)
{
	if (s->watch != NULL) {
		s->watch->end(s->watch->ctx);
	}
}

/* Reports to the watch that the entry has changed otherwise than by an event. */
static inline void series_changed(struct series *s, const struct series_entry *e)
{
	if (s->watch != NULL) {
		s->watch->changed(s->watch->ctx, lru_handle(e));
	}
}

/* series key -> struct series_entry */
extern const struct lru_type series_entry_type;

/* The tick that finishes an event that was observed last at `seen`: the first one later than `seen` + finish_time. */
int64_t series_finish_tick(const struct series *s, int64_t seen);
/*
 * When the count of an event that was observed last at `seen` is to be written. *finishes: unless more follows, it is
 * finished then.
 */
int64_t series_due(const struct series *s, int64_t seen, bool *finishes);
/* Sets s->now. If the clock was set back, entries that were seen later than now count as seen now. */
void series_set_now(struct series *s, int64_t now);

/*
 * Adds an entry in STATE_NEW, which owns the event `first`. NULL: no memory; the event is released, and nothing has
 * changed.
 */
struct series_entry *series_entry_add(struct series *s, struct key *key, evrec_event *first);
bool series_entry_is_over(const struct series *s, const struct series_entry *e);
int32_t series_entry_total(const struct series_entry *e); /* its count, with that of earlier processes */
/* The entry becomes a series of this state, which is reported. */
void series_entry_begin(struct series *s, struct series_entry *e, enum series_state state);
/* Reports an entry of an earlier process: an Unknown series, or an event that may not be written yet. */
void series_entry_tell_restored(struct series *s, struct series_entry *e);
/* Removes the entry, and reports the end if it is a series. */
void series_entry_finish(struct series *s, struct series_entry *e, bool evicted);
/* Makes room for the note, so that series_entry_take_note cannot fail. False: no memory. */
bool series_entry_reserve_note(struct series_entry *e, evrec_str note);
/* Sets the entry's note. True: it was another one. */
bool series_entry_take_note(struct series *s, struct series_entry *e, evrec_str note);

#pragma GCC visibility pop

#endif
