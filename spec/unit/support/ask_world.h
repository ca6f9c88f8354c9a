/*
 * ask_world.h - two shares of one process, stepped in turns: an owner, and a worker that asks it what it has suppressed.
 */
#ifndef EVREC_UNIT_ASK_WORLD_H
#define EVREC_UNIT_ASK_WORLD_H

#include "unit.h"

#include "share/share.h"

/* A process. */
struct ask_process {
	struct share *share;
	unsigned asked, recorded, errors;
	char object[64]; /* that was asked for last; "*": all */
	size_t answer_len;
	bool late; /* recorded after a question */
};

struct ask_world {
	char name[64];
	struct ask_process processes[2];
	int64_t now;
};

extern const struct frame_option ask_option; /* of all processes */

/* A name for the share that no other test has. */
void ask_make_world(struct ask_world *w);
/* False, with *err set: no memory. */
bool ask_start(struct ask_world *w, size_t i, evrec_error *err);
/* As a process that is killed. */
void ask_stop(struct ask_process *p);
/* Makes the world, and starts both; the first is the owner. */
void ask_start_two(struct ask_world *w);
void ask_stop_two(struct ask_world *w);
/* Steps both in turns. */
void ask_step(struct ask_world *w, size_t times);

/* An object of this name, valid until the next call. */
const evrec_reference *ask_about(const char *name);
/* share_ask, which must not fail. */
bool ask_owner(struct ask_process *p, const char *name);
/* A worker records an event about this object. */
void ask_add(struct ask_process *p, const char *object);
/* The worker has an answer of so many bytes. */
void ask_check_answered(struct ask_process *p, size_t len);

#endif
