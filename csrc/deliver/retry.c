#include "deliver/retry.h"

#define WINDOW_FIRST (EVREC_SECOND / 2)
#define WINDOW_MAX (30 * EVREC_SECOND)
#define RETRY_AFTER_MAX (300 * EVREC_SECOND)

static struct retry_decision again(enum verb verb, bool may_have_arrived)
{
	return (struct retry_decision){ .verdict = VERDICT_AGAIN,
		                        .uncertain = verb == VERB_CREATE && may_have_arrived };
}

static struct retry_decision drop(enum evrec_cause cause, bool terminating)
{
	if (terminating) {
		return (struct retry_decision){
			.verdict = VERDICT_DROP, .cause = EVREC_CAUSE_TERMINATING, .quiet = true, .place_refuses = true
		};
	}
	return (struct retry_decision){ .verdict = VERDICT_DROP, .cause = cause };
}

/*
 * Admission refuses this one event, for what is in it, and the next may pass; authorization refuses all. What the
 * former says names the event, or the webhook (apiserver's admission and webhook errors); what the latter says has the
 * user and what he cannot do (its responsewriters), and names the event in a PATCH alone.
 */
static bool refuses_this_event(const char *message)
{
	static const char webhook[] = "admission webhook ", named[] = "events \"";

	return strncmp(message, webhook, sizeof(webhook) - 1) == 0 ||
	       (strncmp(message, named, sizeof(named) - 1) == 0 && strstr(message, " cannot ") == NULL);
}

static struct retry_decision forbidden(const evrec_answer *answer)
{
	struct retry_decision decision = drop(EVREC_CAUSE_FORBIDDEN, answer->terminating);

	decision.place_refuses = answer->terminating || !refuses_this_event(answer->message);
	return decision;
}

static struct retry_decision conflict(enum verb verb, const struct retry_state *state)
{
	if (verb == VERB_PATCH) {
		return again(verb, false);
	}
	if (state->uncertain) {
		return (struct retry_decision){ .verdict = VERDICT_EXISTS, .quiet = true };
	}
	if (!state->renamed) {
		return (struct retry_decision){ .verdict = VERDICT_RENAME, .quiet = true };
	}
	return drop(EVREC_CAUSE_CONFLICT, false);
}

struct retry_decision retry_decide(enum verb verb, const struct retry_state *state, const evrec_answer *answer)
{
	if (answer->status >= 200 && answer->status <= 299) {
		return (struct retry_decision){ .verdict = VERDICT_DONE, .quiet = true };
	}
	switch (answer->status) {
	case 0:
		return again(verb, !answer->unsent);
	case 429: /* refused before it was looked at */
		return again(verb, false);
	case 408:
	case 500:
	case 502:
	case 503:
	case 504:
		return again(verb, true);
	case 401:
		return (struct retry_decision){ .verdict = VERDICT_RELOAD };
	case 403:
		return forbidden(answer);
	case 404:
		if (verb == VERB_PATCH) {
			return (struct retry_decision){ .verdict = VERDICT_CREATE, .quiet = true };
		}
		return drop(EVREC_CAUSE_NOT_FOUND, answer->terminating);
	case 409:
		return conflict(verb, state);
	default: /* redirects too: they are not followed */
		return drop(EVREC_CAUSE_REJECTED, false);
	}
}

int64_t retry_delay(unsigned tries, int64_t retry_after, uint64_t random)
{
	int64_t window = WINDOW_FIRST;
	int64_t delay;

	while (tries > 1 && window < WINDOW_MAX) {
		window *= 2;
		tries--;
	}
	if (window > WINDOW_MAX) {
		window = WINDOW_MAX;
	}
	delay = (int64_t)(random % (uint64_t)(window + 1));
	if (retry_after > RETRY_AFTER_MAX) {
		retry_after = RETRY_AFTER_MAX;
	}
	return delay < retry_after ? retry_after : delay;
}

uint64_t retry_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
