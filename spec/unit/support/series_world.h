/*
 * series_world.h - a broadcaster, by default under a fake clock, a recorder, and a sink of events.k8s.io/v1 that remembers the last
 * event that it got.
 */
#ifndef EVREC_UNIT_SERIES_WORLD_H
#define EVREC_UNIT_SERIES_WORLD_H

#include "stats_invariants.h"

#include <unistd.h>

/* The test owns it. */
struct series_world {
	enum evrec_correlate correlate; /* set before series_world_open; or BY_API, series */
	bool late;                      /* likewise: no sink is started */
	size_t max_pending;             /* likewise; 0: the default */
	unsigned max_tries;             /* likewise */
	bool real_clock;                /* likewise; its time is not `now` */
	evrec_clock *clock;
	int64_t now;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	int status;       /* HTTP status of the sink's next answers */
	int first_status; /* of the next answer alone; 0: as all */
	unsigned creates, patches;
	evrec_fields last; /* the last event; its strings are gone, but for these: */
	char name[256], state[16], patch[256], action[64], instance[256];
	size_t last_note_len;
	unsigned finished; /* writes that said so */
	int32_t finished_count;
	unsigned drops; /* calls of on_drop */
	char cause[32];
};

/* `options` of the series; NULL: the defaults. All of *w but the first members is set. */
void series_world_open(struct series_world *w, const evrec_series_options *options);
/* Starts a sink, as series_world_open does. `watch` is that of the last one; the caller frees others. */
void series_world_start(struct series_world *w, const evrec_series_options *options);
void series_world_close(struct series_world *w);

/* evrec_sink_ops, whose context is a struct series_world. */
void series_world_create(void *ctx, const evrec_event *event, evrec_answer *answer);

/* Records a Warning of the pod shop/`object`, and checks the counters. */
void series_world_record(struct series_world *w, const char *object, const char *note);
void series_world_advance(struct series_world *w, int64_t ns);

#endif
