#include "base/clock.h"
#include "spool/spooler_inner.h"

#include <stdio.h>

void spooler_report(struct outbox *ob, const char *what, const evrec_error *err)
{
	char message[sizeof(((struct outbox_message *)0)->message)];

	(void)snprintf(message, sizeof(message), "%s: %s", what, err->message);
	outbox_report(ob, "spool", message);
}

void spooler_report_once(struct outbox *ob, const char *what, const evrec_error *err, evrec_error *last)
{
	if (strcmp(err->message, last->message) != 0) {
		*last = *err;
		spooler_report(ob, what, err);
	}
}

struct spool_moment spool_moment_now(const evrec_clock *clock)
{
	return (struct spool_moment){ clock_monotonic(clock), evrec_clock_now(clock) };
}

int64_t spool_moment_before(int64_t now, int64_t age)
{
	int64_t then;

	return __builtin_sub_overflow(now, age, &then) ? INT64_MIN : then;
}

int64_t spool_ask_again_at(int64_t now)
{
	return time_after(now, SPOOL_ASK_AGAIN);
}

enum spool_mode spooler_mode(const struct spooler *sp)
{
	return sp->quick ? SPOOL_MODE_QUICK : SPOOL_MODE_WAL;
}

size_t spooler_batch(const struct spooler *sp)
{
	return sp->quick ? SPOOL_BATCH_QUICK : SPOOL_BATCH;
}

void spooler_set_quick(struct spooler *sp, bool quick)
{
	if (quick != sp->quick) {
		sp->quick = quick;
		if (sp->own != NULL && spool_is_open(sp->own)) {
			(void)spool_set_mode(sp->own, spooler_mode(sp), NULL);
		}
		if (sp->found != NULL) {
			(void)spool_set_mode(sp->found, spooler_mode(sp), NULL);
		}
	}
}
