/*
 * cardinality.h - counts the different values of a field that should have few: events are counted by such fields, so
 * data in them makes each event a new one. In memory of fixed size. Pure. One thread at a time.
 */
#ifndef EVREC_CARDINALITY_H
#define EVREC_CARDINALITY_H

#include "base/line.h"

#pragma GCC visibility push(hidden)

/* Values up to which a field is not suspect. The kubelet of Kubernetes 1.36 lists 58 reasons. */
#define CARDINALITY_MAX 100
#define CARDINALITY_SLOTS 128 /* a power of two */
#define CARDINALITY_EXAMPLES 3

/* All zero: no values. */
struct cardinality {
	uint32_t hashes[CARDINALITY_SLOTS]; /* open addressing; 0: free */
	unsigned len;                       /* different values; CARDINALITY_MAX + 1 stands for any number above */
	bool told;
	char examples[CARDINALITY_EXAMPLES][32]; /* the last new values, each cut to fit; these are most likely data */
};

/* True if the value is a new one, and it was counted. Unset values are not counted. */
bool cardinality_add(struct cardinality *c, evrec_str value);
/* There are more than CARDINALITY_MAX values, and it was not reported yet. */
static inline bool cardinality_is_due(const struct cardinality *c)
{
	return c->len > CARDINALITY_MAX && !c->told;
}
/* Appends `more than 100 different reasons, e.g. "A", "B", "C"`. */
void cardinality_put(const struct cardinality *c, const char *values, struct line *line);

#pragma GCC visibility pop

#endif
