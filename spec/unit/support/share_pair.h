/* share_pair.h - shares of one process here, an owner and workers, stepped in turns by a clock of the test. */
#ifndef EVREC_SHARE_PAIR_H
#define EVREC_SHARE_PAIR_H

#include "unit.h"

#include "share/share.h"

/* A share, and sums over its callbacks. */
struct share_side {
	struct share *share;
	bool settles;         /* at once, as written */
	uint64_t occurrences; /* recorded */
	uint64_t most;        /* of these, in one step */
	unsigned errors, troubles;
	char error[256], error_name[32]; /* the last one; a trouble is "sink: kind: text" */
	uint32_t dropped;                /* by lost */
	unsigned left;                   /* workers, to this one */
};

struct share_pair {
	char name[64];
	int64_t now;
	struct share_side sides[3];
};

/* A name that no other test of this machine has. */
void share_pair_init(struct share_pair *p);
void share_pair_free(struct share_pair *p);

struct share_options share_pair_options(const struct share_pair *p);
/* Makes the share of this number. */
struct share_side *share_pair_start(struct share_pair *p, size_t i, const struct share_options *options);
/* Steps each, in turns. */
void share_pair_step(struct share_pair *p, unsigned times);
void share_side_step(struct share_pair *p, struct share_side *side);
/* The first two know each other; the owner settles at once. */
void share_pair_start_two(struct share_pair *p);

/* Records an event about a Service of this name. */
enum share_result share_side_add(const struct share_side *side, const char *object);
/* Of a type. */
enum share_result share_side_add_type(const struct share_side *side, const char *type, const char *object);
struct ledger_counts share_side_counts(const struct share_side *side);

#endif
