#include "share/share_inner.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * An owner that hangs keeps the endpoint, and two owners would be two recorders: so a worker can only report it. It
 * does so after it has waited so long for a frame, and has sent a ping. Time is that of steps: a worker that was itself
 * stopped first reads the frames received meanwhile.
 */
#define ASK_AFTER (2 * EVREC_SECOND)
#define TELL_AFTER (10 * EVREC_SECOND)
#define ANSWER_TIME (5 * EVREC_SECOND)

static void tell(struct share *s, const char *verb, int64_t ns, const char *name)
{
	char owner[48] = "another process", message[256];

	if (s->endpoint.fd >= 0) {
		(void)snprintf(owner, sizeof(owner), "this process");
	} else if (s->silence.pid != 0) {
		(void)snprintf(owner, sizeof(owner), "the process %d", s->silence.pid);
	}
	(void)snprintf(message, sizeof(message), "%s, which owns %s, %s %" PRId64 " s", owner, s->endpoint.name, verb,
	               ns / EVREC_SECOND);
	s->ops->error(s->ctx, message, name);
}

static void forget(struct share *s)
{
	s->silence.since = s->silence.asked = NEVER;
	s->silence.asks = false;
	atomic_store(&s->silent_since, 0);
}

void silence_begin(struct share *s, int fd)
{
	forget(s);
	s->silence.pid = endpoint_peer_of(fd).pid;
}

void silence_end(struct share *s)
{
	forget(s);
	s->silence.pid = 0;
}

void silence_is_over(struct share *s, int64_t now)
{
	const int64_t told = s->silence.told;

	forget(s);
	if (told != NEVER) {
		s->silence.told = NEVER;
		tell(s, "answers again after", now - told, "share_answers");
	}
}

void silence_step(struct share *s, int64_t now)
{
	struct silence *q = &s->silence;

	if (share_is_settled(s)) {
		forget(s);
	} else if (q->since == NEVER) {
		q->since = now;
	} else if (q->asked == NEVER && now - q->since >= ASK_AFTER) {
		q->asked = now;
		q->asks = s->link.phase == LINK_READY;
	} else if (q->asked != NEVER && now - q->asked >= ANSWER_TIME && now - q->since >= TELL_AFTER &&
	           share_silent_since(s) == 0) {
		atomic_store(&s->silent_since, q->since);
		if (q->told == NEVER) {
			q->told = q->since;
			tell(s, "has not answered for", now - q->since, "share_silent");
		}
	}
}

int64_t share_silent_since(const struct share *s)
{
	return atomic_load(&s->silent_since);
}
