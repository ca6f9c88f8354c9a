/* outbox_outcome.h - applies an answer to the model. */
#ifndef EVREC_UNIT_OUTBOX_OUTCOME_H
#define EVREC_UNIT_OUTBOX_OUTCOME_H

#include "outbox_world.h"

/*
 * The write of `id` that is in flight, as `verb`, got this answer. `is_own`: the server has an event of its name that is
 * this write's. `memory`: whether allocations succeed.
 */
void model_answered(struct outbox_world *w, unsigned id, enum verb verb, const evrec_answer *answer, bool is_own,
                    bool memory);

#endif
