/* correlator_life.h - lives of a correlator whose state is kept as bytes, as a file would have them. */
#ifndef EVREC_UNIT_CORRELATOR_LIFE_H
#define EVREC_UNIT_CORRELATOR_LIFE_H

#include "correlations.h"

#include "correlate/state.h"

/* A correlator with its state, and the bytes that a file would have. */
struct correlator_life {
	evrec_correlator *c;
	struct state *state;
	struct keys keys;
	struct buf file;
};

/* Begins the first life. NULL: the defaults. Ended by correlator_life_end. */
void correlator_life_begin(struct correlator_life *life, const evrec_correlator_options *options);
void correlator_life_end(struct correlator_life *life);

/* Observes an event, or one of the pod `object`. */
struct observed correlator_life_observe(struct correlator_life *life, const evrec_fields *event, int64_t now);
struct observed correlator_life_observe_pod(struct correlator_life *life, const char *object, const char *message,
                                            int64_t now);

/* Appends what has changed to the file. */
void correlator_life_save_changes(struct correlator_life *life);
/* Begins a file with all that there is. */
void correlator_life_save_all(struct correlator_life *life);

/* A new life with the bytes of the old one, of which `len` are left. */
struct state_loaded correlator_life_next(struct correlator_life *life, const evrec_correlator_options *options,
                                         size_t len, int64_t now);

#endif
