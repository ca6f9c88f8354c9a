/*
 * verdict.h - what a receiver's answer to a batch means for its records, and for how busy the receiver is. Pure. Any thread.
 */
#ifndef EVREC_OTLP_VERDICT_H
#define EVREC_OTLP_VERDICT_H

#include "otlp/answer.h"
#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

struct otlp_verdict {
	/*
	 * The body was too large, and the batch has more than one record: send each half of it again. No record has an
	 * outcome yet.
	 */
	bool split;
	/*
	 * How many of the records have `outcome`; the others are written (an all-zero outcome). OTLP does not name the
	 * rejected records of a batch, so the caller chooses any.
	 */
	size_t affected;
	struct outcome outcome;
};

/*
 * Fills *verdict for a batch of n records, at least 1:
 *
 *   2xx                              all are written; but `rejected` of them are dropped
 *   no answer, 429, 502, 503, 504    retry, after Retry-After if the receiver said so
 *   413, 400 for a body too large    split; a single record is dropped
 *   all others                       drop (401 and 403: EVREC_CAUSE_FORBIDDEN); OTLP forbids to send the records again
 *
 * A record that is sent again may be stored twice: OTLP has no names by which a receiver could recognise it.
 */
void otlp_verdict(const struct otlp_answer *answer, size_t n, struct otlp_verdict *verdict);

/*
 * True: the answer is a 413, or a 400 whose text says that the body was too large. An incomplete answer counts too: a
 * receiver that stops reading a body may break the connection. A 400 with cut_early counts as well, as its text may be
 * missing: the batch was not accepted, and smaller halves of it will get a complete answer.
 */
bool otlp_says_too_large(const struct otlp_answer *answer);

/* The result of the request that was answered like this. */
enum request_result otlp_result(const struct otlp_answer *answer);

#pragma GCC visibility pop

#endif
