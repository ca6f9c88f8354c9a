#include "base/clock.h"
#include "spool/spooler_inner.h"

void spooler_use_journal(struct spooler *sp, size_t max_bytes)
{
	sp->journal_max = max_bytes;
}

void spooler_drop_journal(struct spooler *sp, struct outbox *ob)
{
	if (sp->journal != NULL) {
		outbox_set_journal(ob, NULL);
		journal_free(sp->journal, true);
		sp->journal = NULL;
	}
}

static bool make_journal(struct spooler *sp, evrec_error *err)
{
	if (!spooler_reserve_own(sp, err)) {
		return false;
	}
	sp->journal = journal_new(spool_pending_path(sp->own), sp->journal_max, &sp->codec, err);
	if (sp->journal == NULL) {
		spool_release(sp->own);
	}
	return sp->journal != NULL;
}

/* Of the wall clock from the monotonic one. A fake clock may have been set back to the other end of time. */
static int64_t offset_at(const struct spool_moment *now)
{
	int64_t offset;

	if (__builtin_sub_overflow(now->wall, now->monotonic, &offset)) {
		return now->wall < 0 ? INT64_MIN : INT64_MAX;
	}
	return offset;
}

void spooler_keep_journal(struct spooler *sp, struct outbox *ob, const evrec_clock *clock)
{
	const struct spool_moment now = spool_moment_now(clock);
	evrec_error err = { 0 };

	if (sp->journal_max == 0 || now.monotonic < sp->journal_at || (sp->journal == NULL && !outbox_has_writes(ob))) {
		return;
	}
	if (sp->journal == NULL ? make_journal(sp, &err) : journal_enlarge(sp->journal, &err)) {
		journal_set_offset(sp->journal, offset_at(&now));
		outbox_set_journal(ob, journal_of_outbox(sp->journal));
		sp->journal_failure.message[0] = '\0';
	} else if (err.message[0] != '\0') {
		sp->journal_at = spool_ask_again_at(now.monotonic);
		spooler_report_once(ob, "a process that is killed loses the events of the last moment", &err,
		                    &sp->journal_failure);
	} else {
		journal_set_offset(sp->journal, offset_at(&now));
	}
}
