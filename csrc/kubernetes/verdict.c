#include "kubernetes/verdict.h"

#include <stdio.h>

static void retry(struct outcome *outcome, enum verb verb, bool maybe_received)
{
	outcome->verdict = VERDICT_RETRY;
	outcome->maybe_received = verb == VERB_CREATE && maybe_received;
}

static void drop(struct outcome *outcome, enum evrec_cause cause)
{
	outcome->verdict = VERDICT_DROP;
	outcome->cause = cause;
}

/* A namespace that is being deleted takes no new objects. This is not reported, as people have deleted it. */
static void drop_terminating(struct outcome *outcome)
{
	drop(outcome, EVREC_CAUSE_TERMINATING);
	outcome->blocks_namespace = true;
	outcome->problem = NULL;
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Admission's message may have any text behind the first of these words. */
bool kubernetes_is_of_authorization(const char *message)
{
	const char *reason = strstr(message, " is forbidden: ");

	return reason != NULL && begins_with(reason, " is forbidden: User \"") && strstr(reason, " cannot ") != NULL;
}

/*
 * Admission refuses one event for what is in it, and the next may pass; authorization refuses all. Admission's message
 * names the event or the webhook (apiserver's admission and webhook errors); authorization's names the user and the
 * verb that is not allowed (its responsewriters), and names the event only for a PATCH.
 */
static bool refuses_this_event(const char *message)
{
	const bool names_event = begins_with(message, "events \"") || begins_with(message, "events.events.k8s.io \"");

	return begins_with(message, "admission webhook ") || (names_event && !kubernetes_is_of_authorization(message));
}

static void forbidden(struct outcome *outcome, const struct kubernetes_try *try, const evrec_answer *answer)
{
	const bool refuses_all = !refuses_this_event(answer->message);
	const char *key;

	if (answer->terminating) {
		drop_terminating(outcome);
		return;
	}
	if (refuses_all && try->just_started) {
		retry(outcome, try->verb, false);
		outcome->problem = NULL;
		return;
	}
	drop(outcome, EVREC_CAUSE_FORBIDDEN);
	outcome->blocks_namespace = refuses_all;
	/* The server names the event, which differs every time, before these words, and the user and verb after them. */
	key = strstr(outcome->message, "is forbidden");
	outcome->once = true;
	outcome->once_from = key == NULL ? 0 : (size_t)(key - outcome->message);
}

static void conflict(struct outcome *outcome, const struct kubernetes_try *try)
{
	if (try->verb == VERB_PATCH) {
		retry(outcome, try->verb, false);
	} else if (try->may_exist) {
		outcome->verdict = VERDICT_EXISTS;
		outcome->problem = NULL;
	} else if (!try->renamed) {
		outcome->verdict = VERDICT_RENAME;
		outcome->problem = NULL;
	} else {
		drop(outcome, EVREC_CAUSE_CONFLICT);
	}
}

static void not_found(struct outcome *outcome, const struct kubernetes_try *try, const evrec_answer *answer)
{
	if (try->verb == VERB_PATCH) {
		outcome->verdict = VERDICT_CREATE;
		outcome->problem = NULL;
	} else if (answer->terminating) {
		drop_terminating(outcome);
	} else {
		drop(outcome, EVREC_CAUSE_NOT_FOUND);
	}
}

bool kubernetes_is_success(int status)
{
	return status >= 200 && status <= 299;
}

/*
 * RFC 9110, 15: a status that is not known is handled as the first one of its class, and one above 599 as a 5xx. Gateways
 * and content delivery networks have many of their own, such as 520 to 530; most of these failures pass.
 */
static int as_known(int status)
{
	return status > 505 ? 500 : status;
}

/* The name that on_error gets. */
static const char *problem_of(int status)
{
	switch (as_known(status)) {
	case 0:
		return "transport";
	case 401:
		return "unauthorized";
	case 403:
		return "forbidden";
	case 404:
		return "not_found";
	case 409:
		return "conflict";
	case 429:
		return "throttled";
	case 408:
	case 500:
	case 502:
	case 503:
	case 504:
		return "server";
	default:
		return "rejected";
	}
}

static void describe(struct outcome *outcome, enum verb verb, const evrec_answer *answer)
{
	const char *method = verb == VERB_CREATE ? "POST" : "PATCH";

	outcome->problem = problem_of(answer->status);
	if (answer->status == 0) {
		/* A function of evrec_sink_new may leave the message empty. */
		(void)snprintf(outcome->message, sizeof(outcome->message), "%s: %s", method,
		               answer->message[0] == '\0' ? "no answer" : answer->message);
	} else if (answer->message[0] == '\0') {
		(void)snprintf(outcome->message, sizeof(outcome->message), "%s: %d", method, answer->status);
	} else {
		(void)snprintf(outcome->message, sizeof(outcome->message), "%s: %d: %s", method, answer->status,
		               answer->message);
	}
}

/* Both have the same size. */
static void copy_string(char *to, const char *from)
{
	if (from[0] != '\0') {
		memcpy(to, from, strlen(from) + 1);
	}
}

void kubernetes_outcome(const struct kubernetes_try *try, const evrec_answer *answer, struct outcome *outcome)
{
	memset(outcome, 0, offsetof(struct outcome, name));
	outcome->name[0] = outcome->resource_version[0] = outcome->message[0] = '\0';
	outcome->retry_after = answer->retry_after;
	outcome->maybe_late = try->verb == VERB_PATCH && answer->maybe_late;
	if (kubernetes_is_success(answer->status)) {
		copy_string(outcome->name, answer->name);
		copy_string(outcome->resource_version, answer->resource_version);
		return;
	}
	describe(outcome, try->verb, answer);
	switch (as_known(answer->status)) {
	case 0:
		retry(outcome, try->verb, !answer->unsent);
		outcome->unanswered = true;
		break;
	case 401:
		/* A request that was lost on a connection which the server closed after another one's 401 is in doubt. */
		retry(outcome, try->verb, answer->maybe_late);
		break;
	case 429: /* refused before it was looked at */
		retry(outcome, try->verb, false);
		outcome->refused = true;
		break;
	case 503:
		retry(outcome, try->verb, true);
		outcome->refused = true;
		break;
	case 408:
	case 500:
	case 502:
	case 504:
		retry(outcome, try->verb, true);
		break;
	case 403:
		forbidden(outcome, try, answer);
		break;
	case 404:
		not_found(outcome, try, answer);
		break;
	case 409:
		conflict(outcome, try);
		break;
	default:
		drop(outcome, EVREC_CAUSE_REJECTED);
		break;
	}
}

enum api_news kubernetes_api_news(const struct kubernetes_try *try, const evrec_answer *answer, bool lacks_api)
{
	switch (answer->status) {
	case 403:
		if (answer->terminating || refuses_this_event(answer->message)) {
			return API_SERVED;
		}
		return try->just_started ? API_NO_NEWS : API_FORBIDDEN;
	case 404:
		return lacks_api ? API_MISSING : API_SERVED;
	case 409:
	case 422:
		return API_SERVED;
	default:
		return kubernetes_is_success(answer->status) ? API_SERVED : API_NO_NEWS;
	}
}

enum request_result kubernetes_result(const evrec_answer *answer)
{
	switch (answer->status) {
	case 0:
	case 401: /* counts as unanswered: one request at a time suffices to see the end */
		return REQUEST_UNANSWERED;
	case 429:
	case 503:
		return REQUEST_REFUSED;
	case 408:
	case 504:
		return REQUEST_TIMED_OUT;
	default:
		return kubernetes_is_success(answer->status) ? REQUEST_SUCCEEDED : REQUEST_OTHER;
	}
}
