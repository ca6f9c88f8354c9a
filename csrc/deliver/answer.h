/*
 * answer.h - what a server said about a request, and what that means. Pure: no I/O, no clock. Any thread.
 */
#ifndef EVREC_ANSWER_H
#define EVREC_ANSWER_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * Fills an answer's name, resource version, message, terminating and retry_after (where a header had not set it) from
 * a response body: an Event, a Status, or text. A 2xx whose body is no JSON object is not from an API server: its
 * status becomes 0, to be tried again.
 */
void answer_read_body(evrec_answer *answer, evrec_str body);

/* The Retry-After header: seconds, or an HTTP date. 0 where it is neither. `now` is wall-clock time. */
int64_t answer_retry_after(evrec_str value, int64_t now);

#pragma GCC visibility pop

#endif
