#include "as_kubernetes.h"

static struct outcome outcome_as_kubernetes(const struct entry *entry, const evrec_answer *answer)
{
	const struct kubernetes_try try = { entry->verb, entry_may_exist(entry), entry->renamed, false };
	struct outcome outcome;

	kubernetes_outcome(&try, answer, &outcome);
	return outcome;
}

void answer_entry_as_kubernetes(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now)
{
	const struct outcome outcome = outcome_as_kubernetes(entry, answer);

	outbox_answer(ob, entry, &outcome, now);
}

void answer_request_as_kubernetes(struct sender *s, struct entry *entry, const evrec_answer *answer)
{
	const struct outcome outcome = outcome_as_kubernetes(entry, answer);

	sender_answered(s, entry, &outcome);
	sender_request_ended(s, kubernetes_result(answer), answer->retry_after);
}
