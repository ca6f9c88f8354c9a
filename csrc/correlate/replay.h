/*
 * replay.h - shared by the files of a replay (evrec_read.h: evrec_replay_new). Pure: the times are those of the events.
 *
 *   replay.c         a replay from its begin to its results
 *   replay_feed.c    the lines of a trace
 *   replay_occur.c   occurrences go through the correlator of each variant, and are counted
 *   replay_variant.c one variant: correlator or series, its keys, its requests
 *
 * Each calls only those below it.
 */
#ifndef EVREC_REPLAY_H
#define EVREC_REPLAY_H

#include "correlate/correlator.h"
#include "correlate/series.h"
#include "event/trace_line.h"
#include "evrec_read.h"

#pragma GCC visibility push(hidden)

#define KEY_FIELDS 16 /* at most, of a spam key */

/* A field of evrec_fields that is a part of a spam key. */
struct key_field {
	size_t offset;
	char *map_key; /* of an evrec_map at the offset; NULL: the field is an evrec_str */
};

/* Requests of each minute. */
struct minutes {
	struct lru *counts; /* number of the minute -> uint64_t */
	int64_t minute;     /* the minute of `count`, which is not in `counts` yet */
	uint64_t count, peak;
	int64_t peak_minute;
};

struct variant {
	evrec_correlator *correlator; /* or NULL */
	bool by_series, real_clock;
	struct series *series;           /* if `by_series`, from the first occurrence on, from which its ticks count */
	evrec_correlator_options limits; /* of the series */
	evrec_series_options series_options; /* likewise */
	struct lru *deferred;                /* handle of an event in a series -> struct deferred */
	struct key_field fields[KEY_FIELDS];
	size_t fields_len;             /* 0: the trace's key */
	struct buf key;                /* the spam key that was made last */
	const struct trace_keys *keys; /* of the occurrence that is replayed now */
	struct minutes minutes;
	size_t buckets_max;
	uint64_t heartbeats;
};

bool variant_create(struct variant *v, const evrec_replay_variant *options, evrec_error *err);
void variant_destroy(struct variant *v);
/* As spam_filter_use_real_clock; before the first occurrence. */
void variant_use_real_clock(struct variant *v);
/* Lets the variant observe an occurrence at `t`, and counts its requests. False: no memory. */
bool variant_observe(struct variant *v, const evrec_fields *event, struct keys *keys, const struct trace_keys *chosen,
                     int64_t t, struct observed *observed);
/* Counts the heartbeats that were deferred until `t`. False: no memory. */
bool variant_end(struct variant *v, int64_t t);

/* An event, ready to occur again. */
struct known {
	evrec_event *event;
	/* One for each variant, which stores in it the places of its entries; they share the text of the first. */
	struct keys *keys;
	struct trace_keys chosen; /* in `text` */
	struct buf text;
	size_t bytes; /* of a definition: all memory that it takes */
};

/* The events of one source, object, type and reason. */
struct replay_group {
	evrec_event *event; /* the first one */
	uint64_t occurrences;
	int64_t first, last;
	uint64_t number; /* of its last occurrence, among all */
	evrec_replayed_tally tallies[];
};

struct evrec_replay {
	struct variant *variants;
	size_t variants_len;
	struct lru_type group_type;
	struct lru *groups;            /* aggregate key -> struct replay_group */
	struct replay_group **ordered; /* by evrec_replay_end; the one that occurred last first */
	evrec_replayed_trace trace;
	struct known single; /* of evrec_replay_add */
	/*
	 * For evrec_replay_feed. A writer forgets an event after TRACE_IDS others, and then defines it again, usually
	 * by the same text. A text is parsed once.
	 */
	struct lru *definitions;  /* text of a definition -> struct known; NULL: the first line was not read */
	size_t definitions_bytes; /* the sum of `bytes` */
	uint64_t ids[TRACE_IDS];  /* handles of definitions; 0: the id was not used yet */
	struct buf rest;          /* the beginning of a line */
	struct trace_line line;
};

/* Makes *known stand for this event, which it takes over. False: no memory; then *known is zeroed. */
bool replay_know(evrec_replay *replay, struct known *known, evrec_event *event, const struct trace_keys *chosen);
void replay_forget(struct known *known);
/* Replays an occurrence. False: no memory. */
bool replay_occur(evrec_replay *replay, struct known *known, int64_t t, int64_t at);
/* Frees the memory of the fed file's lines. */
void replay_end_feed(evrec_replay *replay);

#pragma GCC visibility pop

#endif
