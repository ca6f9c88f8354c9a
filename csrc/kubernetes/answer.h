/* answer.h - parses an API server's answer to a write of an Event. Pure: no I/O, no clock. Any thread. */
#ifndef EVREC_ANSWER_H
#define EVREC_ANSWER_H

#include "http/http_client.h"

#pragma GCC visibility push(hidden)

/* Fills `answer`, which is all zero, from the response to a request that writes an Event. */
void answer_read(evrec_answer *answer, const struct http_response *response);

/*
 * Fills an answer's name, resource version, message, terminating and retry_after (if a header has not set it) from
 * a response body: an Event, a Status, or text. A 2xx whose body is no JSON object is not from an API server: its
 * status becomes 0, so that the write is retried.
 */
void answer_read_body(evrec_answer *answer, evrec_str body);

/*
 * True: a 404 to a request that writes an Event, and neither the namespace nor the Event is missing: the server does
 * not have the API.
 */
bool answer_lacks_api(const struct http_response *response);

#pragma GCC visibility pop

#endif
