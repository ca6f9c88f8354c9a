#include "recorder/sharing_inner.h"

#include <inttypes.h>

struct question {
	const evrec_reference *object;
	struct buf *answer;
	bool asked;
};

enum progress { WAITS, ANSWERED, OWNS, FAILED };

static enum progress fail(evrec_error *err, int code, const char *message)
{
	(void)error_set(err, code, "%s", message);
	return FAILED;
}

static enum progress take_answer(struct share *share, struct question *q, evrec_error *err)
{
	const enum share_answer answer = share_take_answer(share, q->answer);

	q->asked = answer == SHARE_ASKED;
	if (answer == SHARE_REFUSED) {
		return fail(err, EVREC_ENOMEM, "share: no memory for the owner's answer, or it is too long");
	}
	return answer == SHARE_ANSWERED ? ANSWERED : WAITS;
}

static enum progress go_on(struct hub *hub, struct question *q, evrec_error *err)
{
	struct sharing *sh = hub->sharing;

	sharing_poll(hub, false);
	if (atomic_load(&sh->stops)) {
		return atomic_load(&sh->owns) ? OWNS : fail(err, EVREC_ECLOSED, "the broadcaster is shut down");
	}
	if (sh->share == NULL) {
		return WAITS;
	}
	if (share_role(sh->share) == SHARE_OWNER) {
		return OWNS;
	}
	if (q->asked) {
		return take_answer(sh->share, q, err);
	}
	q->asked = share_ask(sh->share, q->object, err);
	return q->asked || err->code == 0 ? WAITS : FAILED;
}

static int time_out(const struct hub *hub, int64_t timeout, evrec_error *err)
{
	const struct share *share = hub->sharing->share;
	const bool found = share != NULL && share_role(share) == SHARE_WORKER;
	const char *what = found ? "the owner did not answer" : "no owner was found";

	return error_set(err, EVREC_ETIMEOUT, "share: %s within %" PRId64 " ms", what, timeout / (EVREC_SECOND / 1000));
}

static bool has_sinks(struct hub *hub)
{
	bool has;

	hub_lock(hub);
	has = hub->last_number != 0;
	hub_unlock(hub);
	return has;
}

static bool wait_until(int64_t deadline)
{
	const bool waits = sharing_mono() < deadline;

	if (waits) {
		sharing_wait(deadline);
	}
	return waits;
}

int sharing_ask(struct hub *hub, const evrec_reference *object, int64_t timeout, struct buf *answer, bool *owns,
                evrec_error *err)
{
	struct question q = { object, answer, false };
	enum progress progress = OWNS;
	evrec_error failure = { 0 };
	int64_t deadline;

	if (__builtin_add_overflow(sharing_mono(), timeout, &deadline)) {
		deadline = INT64_MAX;
	}
	/* Without a sink there is no answer, and the share does not look for an owner. */
	if (has_sinks(hub)) {
		do {
			progress = go_on(hub, &q, &failure);
		} while (progress == WAITS && wait_until(deadline));
	}
	if (q.asked) {
		share_forget_question(hub->sharing->share);
	}
	*owns = progress == OWNS;
	if (progress == WAITS) {
		return time_out(hub, timeout < 0 ? 0 : timeout, err);
	}
	return error_set(err, failure.code, "%s", failure.message);
}
