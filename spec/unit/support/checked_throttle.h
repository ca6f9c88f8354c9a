/* checked_throttle.h - a throttle without jitter that a test takes step by step; an illegal change of state fails the test. */
#ifndef EVREC_UNIT_CHECKED_THROTTLE_H
#define EVREC_UNIT_CHECKED_THROTTLE_H

#include "unit.h"

#include "outbox/throttle.h"

#define S EVREC_SECOND
#define MS (S / 1000)

struct throttle throttle_without_jitter(unsigned max_in_flight);

/* Starts `n` requests, each of which may start by `now`. */
void checked_start(struct throttle *t, unsigned n, int64_t now);

/* Ends a request. True if this ended an outage. */
bool checked_end(struct throttle *t, enum request_result result, int64_t retry_after, int64_t now);

/* Writes `n` times with success and a full window, 1 ms each from `now` on. Returns the time of the end. */
int64_t write_full_window(struct throttle *t, unsigned n, int64_t now);

/* Starts one request, which is refused at once. Returns when the next one may start. */
int64_t refuse_single(struct throttle *t, int64_t retry_after, int64_t now);

#endif
