/*
 * ranking.h - sorts things by a time or another number, and keeps only the first ones if there is a limit. For one
 * thread at a time.
 */
#ifndef EVREC_READ_RANKING_H
#define EVREC_READ_RANKING_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * A thing is an offset in a file, which is its `tie`; or a text of mem_alloc that the ranking owns. Things of equal rank
 * are ordered by their ties, as by the rank; if these are equal too, they keep the order in which they were put.
 */
struct ranked {
	int64_t rank;
	uint64_t number; /* in the order of putting */
	uint64_t tie;
	char *text; /* or NULL */
	size_t len;
};

/* A heap until it is sorted, with the last thing of the order at the top. */
struct ranking {
	struct ranked *things;
	size_t len, cap, at; /* `at`: how many were returned */
	size_t limit;        /* 0: none */
	uint64_t numbers;
	bool descending;
};

/* Whether ranking_put would keep a thing of this rank and tie now. */
bool ranking_takes(const struct ranking *r, int64_t rank, uint64_t tie);
/* Adds a thing, which may replace another one. Owns `text`, also if there is no memory: false. */
bool ranking_put(struct ranking *r, int64_t rank, uint64_t tie, char *text, size_t len);
/* Sorts all things; afterwards only ranking_next may be called. */
void ranking_sort(struct ranking *r);
/* The next thing, which stays the ranking's; NULL: there is none. */
struct ranked *ranking_next(struct ranking *r);
/* Forgets all things: the ranking begins anew. */
void ranking_clear(struct ranking *r);
void ranking_free(struct ranking *r);

#pragma GCC visibility pop

#endif
