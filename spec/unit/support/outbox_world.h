/*
 * outbox_world.h - the surroundings of an outbox under test: the pipeline that submits to it, a spool, and an API server
 * that fails in all ways it can and knows which events it stores.
 */
#ifndef EVREC_UNIT_OUTBOX_WORLD_H
#define EVREC_UNIT_OUTBOX_WORLD_H

#include "outbox_model.h"
#include "receipt_tally.h"

#define WORLD_IDS 9 /* events of a life */
#define WORLD_EVENTS 256
#define WORLD_IN_FLIGHT 4
#define WORLD_IDS_PER_LIFE 12 /* a multiple of 3 and 4, so that an event has the same namespace and kind in each life */
#define WORLD_ROWS 64
#define WORLD_LATE 8
#define WORLD_MAYBE_LATE_FOR (2 * EVREC_SECOND)

struct stored_event {
	char name[64];
	unsigned id; /* 0: another client's event */
	unsigned count;
	uint32_t base; /* occurrences of an earlier process, which created it; 0: none did */
	bool there;
};

/* A row of the spool; its number is the event's id. */
struct spooled_write {
	struct outbox_saved saved;
	struct fake_write item;
	bool there, loaded;
};

/* A PATCH that the server has received and not carried out yet. */
struct late_patch {
	struct fake_write item;
	unsigned id; /* 0: none */
	int64_t due; /* latest time of its execution; INT64_MAX: not before a later PATCH of the event was answered */
};

/* The test owns it, and frees `ob`. */
struct outbox_world {
	struct outbox *ob;
	unsigned life; /* number of the process, from 0 */
	struct spooled_write rows[WORLD_ROWS];
	struct model m;
	uint64_t random;
	int64_t now;
	bool healthy; /* the server succeeds always */
	bool foreign; /* other clients use some names; then the limits drop nothing */
	struct {
		char name[64]; /* known to the pipeline */
		unsigned count;
		uint32_t base;
		bool accepted; /* the outbox has accepted an occurrence */
	} pipeline[WORLD_IDS + 1];
	struct stored_event server[WORLD_EVENTS];
	unsigned acknowledged[MODEL_IDS]; /* last count of the event that the server acknowledged */
	struct late_patch late[WORLD_LATE];
	struct entry *in_flight[WORLD_IN_FLIGHT];
	unsigned receipts; /* of 2 occurrences so many have a receipt */
	struct receipt_tally tally;
	unsigned chosen; /* names that the server, or an earlier process, chose */
};

/* A random number below `n`. */
unsigned world_below(struct outbox_world *w, unsigned n);

/* The id of the pipeline's n-th event in this life; whether its name is another client's; its importance; its namespace. */
unsigned world_id(const struct outbox_world *w, unsigned n);
bool world_is_taken(const struct outbox_world *w, unsigned id);
bool world_is_important(const struct outbox_world *w, unsigned id);
unsigned namespace_of(unsigned id);

/* Answers a taken entry's request as the server, at random: success, refusal, fault, or loss of request or answer. */
void world_try(struct outbox_world *w, const struct entry *entry, evrec_answer *answer);

/*
 * At random, and if the server may not have this write's event already: it has one that an earlier process created. NULL:
 * it has not.
 */
const struct stored_event *world_find_to_adopt(struct outbox_world *w, const struct entry *entry);

/* Carries out a request. Returns the HTTP status; `answer` gets the name if the server chose one, or is NULL. */
int world_serve(struct outbox_world *w, const struct entry *entry, evrec_answer *answer);

/* An entry was collected: takes its receipts. */
void world_collected(struct outbox_world *w, const struct entry *entry);

/* The event of that name; NULL if there is none. */
struct stored_event *world_find(struct outbox_world *w, const char *name);

/* Stores an event; fails the test if the server has an event of this id already. */
struct stored_event *world_store(struct outbox_world *w, const char *name, unsigned id, unsigned count);

/* Keeps a PATCH for later. False if there are too many. */
bool world_hold_patch(struct outbox_world *w, const struct entry *entry);

/* Carries out such a PATCH now, whatever came after it. */
void world_apply_patch(struct outbox_world *w, struct late_patch *late);

/* Deletes an event, as at the end of its time to live. */
void world_expire(struct outbox_world *w, struct stored_event *event);

/* Discards late PATCHes of events whose writes were dropped: evrec no longer repairs these. */
void world_release_dropped(struct outbox_world *w);

/* Lets time pass; late PATCHes that become due are carried out. */
void world_advance(struct outbox_world *w, int64_t time);

/* Carries out all late PATCHes. Then no event's count is below the one acknowledged last. */
void world_check_counts_kept(struct outbox_world *w);

/* The server has each event of this life once, with all its occurrences. */
void world_check_complete(struct outbox_world *w);

#endif
