#define _GNU_SOURCE /* strcasestr */

#include "otlp/verdict.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_success(int status)
{
	return status >= 200 && status <= 299;
}

/*
 * The name that on_error gets. If the batch is dropped, it is the cause: evrec's lines say of other names that it is
 * retried.
 */
static const char *problem_of(int status)
{
	switch (status) {
	case 0:
		return "transport";
	case 401:
	case 403:
		return "forbidden";
	case 429:
		return "throttled";
	case 502:
	case 503:
	case 504:
		return "server";
	default:
		return "rejected";
	}
}

static void describe(struct outcome *outcome, const struct otlp_answer *answer)
{
	const char *between = answer->message[0] == '\0' ? "" : ": ";

	outcome->problem = problem_of(answer->status);
	if (answer->status == 0) {
		(void)snprintf(outcome->message, sizeof(outcome->message), "POST: %s", answer->message);
	} else {
		(void)snprintf(outcome->message, sizeof(outcome->message), "POST: %d%s%s", answer->status, between,
		               answer->message);
	}
}

static void retry(struct outcome *outcome, const struct otlp_answer *answer)
{
	outcome->verdict = VERDICT_RETRY;
	outcome->retry_after = answer->retry_after;
	outcome->unanswered = answer->status == 0;
	outcome->refused = answer->status == 429 || answer->status == 503;
}

static void drop(struct outcome *outcome, enum evrec_cause cause)
{
	outcome->verdict = VERDICT_DROP;
	outcome->cause = cause;
}

static void rejected(struct otlp_verdict *verdict, const struct otlp_answer *answer, size_t n)
{
	const char *between = answer->message[0] == '\0' ? "" : ": ";
	struct outcome *outcome = &verdict->outcome;

	verdict->affected = (uint64_t)answer->rejected < n ? (size_t)answer->rejected : n;
	drop(outcome, EVREC_CAUSE_REJECTED);
	outcome->problem = "rejected";
	(void)snprintf(outcome->message, sizeof(outcome->message), "the receiver rejected %zu of %zu records%s%s",
	               verdict->affected, n, between, answer->message);
}

/* A partial success without rejected records may have a warning (OTLP). The outcome of one record carries it. */
static void warned(struct otlp_verdict *verdict, const struct otlp_answer *answer)
{
	struct outcome *outcome = &verdict->outcome;

	verdict->affected = 1;
	outcome->problem = "warning";
	if (answer->web_page) {
		(void)snprintf(outcome->message, sizeof(outcome->message),
		               "POST: %d with a web page (text/html): is the endpoint one of a receiver?",
		               answer->status);
	} else {
		(void)snprintf(outcome->message, sizeof(outcome->message), "the receiver warns: %s", answer->message);
	}
}

/* A receiver that limits the bytes of a body may answer 400, as with Go's MaxBytesReader. */
bool otlp_says_too_large(const struct otlp_answer *answer)
{
	if (answer->status == 400 && (answer->cut_early || answer->too_large)) {
		return true;
	}
	return answer->status == 413 || (answer->status == 400 && (strcasestr(answer->message, "too large") != NULL ||
	                                                           strcasestr(answer->message, "larger than") != NULL));
}

void otlp_verdict(const struct otlp_answer *answer, size_t n, struct otlp_verdict *verdict)
{
	struct outcome *outcome = &verdict->outcome;

	memset(verdict, 0, offsetof(struct otlp_verdict, outcome) + offsetof(struct outcome, name));
	outcome->name[0] = outcome->resource_version[0] = outcome->message[0] = '\0';
	if (is_success(answer->status)) {
		if (answer->rejected > 0) {
			rejected(verdict, answer, n);
		} else if (answer->web_page || answer->message[0] != '\0') {
			warned(verdict, answer);
		}
		return;
	}
	if (otlp_says_too_large(answer) && n > 1) {
		verdict->split = true;
		return;
	}
	verdict->affected = n;
	describe(outcome, answer);
	switch (answer->status) {
	case 0:
	case 429:
	case 502:
	case 503:
	case 504:
		retry(outcome, answer);
		break;
	case 401:
	case 403:
		drop(outcome, EVREC_CAUSE_FORBIDDEN);
		break;
	default:
		drop(outcome, EVREC_CAUSE_REJECTED);
		break;
	}
}

enum request_result otlp_result(const struct otlp_answer *answer)
{
	switch (answer->status) {
	case 0:
		return answer->timed_out ? REQUEST_TIMED_OUT : REQUEST_UNANSWERED;
	case 429:
	case 503:
		return REQUEST_REFUSED;
	case 408:
	case 504:
		return REQUEST_TIMED_OUT;
	default:
		return is_success(answer->status) ? REQUEST_SUCCEEDED : REQUEST_OTHER;
	}
}
