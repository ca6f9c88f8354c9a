/*
 * killed_world.h - what outlives the processes of a test that kills them: the time, the random numbers, the events that
 * they have recorded, and a server that comes and goes, and carries out some PATCHes late. It may be in shared memory.
 */
#ifndef EVREC_UNIT_KILLED_WORLD_H
#define EVREC_UNIT_KILLED_WORLD_H

#include "fake_write.h"

#define LIVES 12
#define SINKS 2
#define IDS 5 /* events of each sink in a life */
#define EVENTS (LIVES * SINKS * IDS)
#define OCCURRENCES 512
#define IN_FLIGHT 4
#define LATE 8

struct recorded {
	int64_t at[OCCURRENCES];
	unsigned n;
	unsigned safe;  /* occurrences that may not be lost */
	unsigned noted; /* those of them that were in a journal at once */
	unsigned stored;
};

/* A PATCH that is carried out later. */
struct late {
	unsigned event, count; /* from 1; 0: none */
	int64_t due;
};

struct killed_world {
	int64_t now;
	uint64_t random;
	bool away; /* the server answers nothing */
	struct recorded events[EVENTS];
	struct late late[LATE];
	struct late in_flight[SINKS][IN_FLIGHT];
	bool in_flight_is_post[SINKS][IN_FLIGHT];
	bool journal;       /* all lives have one */
	unsigned lost_most; /* the most occurrences that one event lost */
	unsigned kills;
};

/* A random number below `n`. */
unsigned killed_world_below(struct killed_world *w, unsigned n);

/* The event of a write. */
struct recorded *killed_world_event(struct killed_world *w, const struct fake_write *item);

/* Answers a request at random: it is carried out, or the server is away, or the answer is lost. */
void killed_world_try(struct killed_world *w, struct entry *entry, evrec_answer *answer);

/* Carries out the late PATCHes that are due, or all. */
void killed_world_carry_out_late(struct killed_world *w, bool all);

/* Requests that a dead process had sent arrive, or not. */
void killed_world_settle_requests(struct killed_world *w);

#endif
