/*
 * state_life.h - lives of a process that records to a sink with a state file, under a fake clock: a broadcaster, a
 * recorder, and a sink that remembers the last event that it got. Its polls write the file. No event lacks a token.
 */
#ifndef EVREC_UNIT_STATE_LIFE_H
#define EVREC_UNIT_STATE_LIFE_H

#include "unit.h"

#include <sys/types.h>

struct state_life {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	unsigned creates, patches, errors;
	int32_t count; /* of the last event that was written */
	bool fails;    /* the sink answers 503 */
	char name[64], error[256], error_name[32];
	void (*written)(const evrec_fields *event); /* NULL: nobody asks */
};

/* Begins a life at `now` with such a sink. */
void state_life_begin(struct state_life *life, const char *path, int64_t now);
/* The same with a sink that combines events by series. */
void state_life_begin_series(struct state_life *life, const char *path, int64_t now);
/* As state_life_begin, without a poll: the sink is started, and not used. */
void state_life_start(struct state_life *life, const char *path, int64_t now);
/* Begins a life with another sink, of which it takes the reference. */
void state_life_begin_with(struct state_life *life, evrec_sink *sink, int64_t now);
/* The same under a clock, of which it takes the reference. */
void state_life_begin_under(struct state_life *life, evrec_sink *sink, evrec_clock *clock);
/* Starts one more sink with that state file. */
void state_life_add_sink(struct state_life *life, const char *path);
/* Records a Normal event of the pod shop/`object`. */
void state_life_emit(struct state_life *life, const char *object);
/* Does that, and polls. */
void state_life_record(struct state_life *life, const char *object);
/* Moves the clock, and polls. */
void state_life_advance(struct state_life *life, int64_t ns);
void state_life_shutdown(struct state_life *life);
/* Frees all, after a shutdown or without one. */
void state_life_free(struct state_life *life);
/* Both. */
void state_life_end(struct state_life *life);

/* Records one more event of pod a in a life of its own, and checks that the sink got this count. */
void state_life_check_next(const char *path, int64_t now, int32_t count);
/* Checks that the life was told one error, of the state file, which contains `words`. */
void state_life_check_told(const struct state_life *life, const char *words);
/* The bytes of a file; -1: there is none. */
off_t state_life_size(const char *path);
/* A whole life, which records an event of pod a twice. */
void state_life_live_once(const char *path, int64_t now);

#endif
