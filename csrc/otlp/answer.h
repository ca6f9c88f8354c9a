/* answer.h - parses a receiver's answer to a batch. Pure: no I/O, no clock. Any thread. */
#ifndef EVREC_OTLP_ANSWER_H
#define EVREC_OTLP_ANSWER_H

#include "otlp/batch.h"

#pragma GCC visibility push(hidden)

struct otlp_answer {
	int status;          /* 0: there was no whole answer */
	bool cut_early;      /* the answer is incomplete, and came before all of the batch was sent */
	bool timed_out;      /* status 0 */
	int64_t retry_after; /* ns; 0: the receiver did not say */
	int64_t rejected;    /* of a 2xx: the records that the receiver refused */
	bool web_page;       /* of a 2xx: the body is a web page, so the server may not be a receiver of OTLP */
	bool too_large;      /* the status or the text says so; set before secrets are hidden in the text */
	char message[256];   /* for people: UTF-8 on one line, without spaces at the ends; may be empty */
};

/*
 * Fills `rejected`, `web_page` and `message` from the body of an answer with a status other than 0; the caller has set the other
 * fields, and begun with an all-zero answer. Reads an ExportLogsServiceResponse of a 2xx, else a google.rpc.Status, or the
 * first line of a text. `content_type` is the header's value; unset: unknown, and then the body has the encoding of the
 * request, `asked`, as OTLP demands. A 2xx whose body cannot be parsed counts as complete success: some receivers
 * answer "ok".
 */
void otlp_answer_read(struct otlp_answer *answer, enum otlp_encoding asked, evrec_str content_type, evrec_str body);

/* Sets the message to the first line of this text: the reason of a status 0. */
void otlp_answer_text(struct otlp_answer *answer, evrec_str text);

#pragma GCC visibility pop

#endif
