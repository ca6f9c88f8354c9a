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
	 * The body was too large, and the batch has more than one record: send each half of it anew. No record has an
	 * outcome yet.
	 */
	bool split;
	/*
	 * How many of the records have `outcome`; the others are written, as an all-zero outcome says. OTLP does not say which
	 * records of a batch were rejected, so the caller chooses any.
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
 * A record that is sent again may be there twice: OTLP has no names by which a receiver could tell.
 */
void otlp_verdict(const struct otlp_answer *answer, size_t n, struct otlp_verdict *verdict);

/*
 * True: the answer says that the body was too large, by a 413, or by a 400 with a text that says so. This much is sure also
 * of an answer that was cut: a receiver that reads no more of a body may break the connection. A 400 that was cut early may
 * lack its text; the batch was not taken, and halves of it get a whole answer at last.
 */
bool otlp_says_too_large(const struct otlp_answer *answer);

/* The result of the request that was answered like this. */
enum request_result otlp_result(const struct otlp_answer *answer);

#pragma GCC visibility pop

#endif
