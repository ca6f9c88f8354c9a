/* outbox_outcome.h - the server's answers, given to the outbox and to the model. */
#ifndef EVREC_UNIT_OUTBOX_OUTCOME_H
#define EVREC_UNIT_OUTBOX_OUTCOME_H

#include "outbox_world.h"

/* Answers the entry in flight in this slot, at random; at times it adopts an event instead, or memory is short. */
void world_answer(struct outbox_world *w, size_t slot);

#endif
