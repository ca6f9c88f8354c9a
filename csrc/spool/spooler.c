#include "spool/spooler_inner.h"

#include "base/clock.h"
#include "spool/sqlite.h"

/*
 * The number of answered rows that are deleted in a transaction; fewer if no other row waits for its answer, or after a
 * while.
 */
#define FORGET_AT 64
#define FORGET_WAITS (EVREC_SECOND / 4)
#define JOURNAL_LOOK (EVREC_SECOND / 4)

struct spooler *spooler_new(evrec_str folder, int64_t after, const struct spool_codec *codec)
{
	struct spooler *sp = mem_zalloc(sizeof(*sp));

	if (sp == NULL) {
		return NULL;
	}
	(void)sqlite_load(NULL); /* before the guard */
	sp->after = after;
	sp->codec = *codec;
	sp->look_at = sp->write_at = sp->forget_at = sp->check_at = INT64_MIN;
	sp->next_number = 1;
	sp->folder = str_dup(folder);
	if (sp->folder == NULL) {
		mem_free(sp);
		return NULL;
	}
	return sp;
}

static void free_files(struct spooler *sp)
{
	if (sp->found != sp->own) {
		spool_free(sp->found);
	}
	spool_free(sp->own);
	sp->own = sp->found = NULL;
	while (sp->ahead_len != 0) {
		spool_free(sp->ahead[--sp->ahead_len]);
	}
}

void spooler_free(struct spooler *sp)
{
	if (sp != NULL) {
		journal_free(sp->journal, false);
		free_files(sp);
		mem_free(sp->ahead);
		for (size_t i = 0; i < sp->aside_len; i++) {
			mem_free(sp->aside[i]);
		}
		mem_free(sp->aside);
		mem_free(sp->folder);
		mem_free(sp);
	}
}

void spooler_use_state(struct spooler *sp, struct state_file *state)
{
	sp->state = state;
}

int64_t spooler_after(const struct spooler *sp)
{
	return sp->after;
}

/* ---- rows that were answered ---- */

static bool forget_row(struct spooler *sp, int64_t row, evrec_error *err)
{
	int64_t seq;
	struct spool *spool = spooler_file_of(sp, row, &seq);

	return spool == NULL || !spool_is_open(spool) || spool_is_damaged(spool) || spool_forget(spool, seq, err);
}

/* Deletes rows in one transaction. False: all of them stay, also in the outbox's list. */
static bool forget_batch(struct spooler *sp, struct outbox *ob, bool all, evrec_error *err)
{
	int64_t rows[SPOOL_BATCH];
	bool ok = spooler_begin(sp, err);
	size_t n, done = 0;

	do {
		n = ok ? outbox_get_answered_rows(ob, done, rows, spooler_batch(sp)) : 0;
		for (size_t i = 0; ok && i < n; i++) {
			ok = forget_row(sp, rows[i], err);
		}
		done += n;
	} while (all && ok && n != 0);
	ok = ok && spooler_commit(sp, err);
	if (ok) {
		outbox_rows_forgotten(ob, done);
	} else {
		spooler_rollback(sp);
	}
	return ok;
}

/* The next process would send a remaining row again, perhaps after a later count of its event. */
static void forget_answered(struct spooler *sp, struct outbox *ob, int64_t now, bool all)
{
	evrec_error err;

	if (forget_batch(sp, ob, all, &err)) {
		sp->forget_failure.message[0] = '\0';
		return;
	}
	sp->forget_at = spool_ask_again_at(now);
	spooler_report_once(ob, "written events stay in the spool, to be written again", &err, &sp->forget_failure);
	/* A flush does not wait for a full disk. */
	outbox_expect(ob, false);
	if (sp->found != NULL && !sp->read) {
		sp->restore_at = sp->forget_at;
	}
}

static bool should_forget(const struct spooler *sp, const struct outbox_rows *rows, int64_t now)
{
	if (rows->answered == 0 || now < sp->forget_at) {
		return false;
	}
	return rows->answered >= FORGET_AT || rows->waiting + rows->own == 0 ||
	       time_since(now, rows->answered_at) >= FORGET_WAITS;
}

/* ---- a step ---- */

static bool is_drained(const struct spooler *sp, const struct outbox_rows *rows)
{
	return sp->read && rows->waiting == 0 && rows->answered == 0;
}

static bool may_take_up(const struct spooler *sp, const struct outbox_rows *rows, int64_t now)
{
	return !sp->read && rows->room != 0 && (now >= sp->restore_at || rows->room_bytes > sp->refused_room);
}

/*
 * Restores rows, and looks for the next file. False: there is no other file, or the present one needs answers or room
 * first.
 */
static bool take_up(struct spooler *sp, struct outbox *ob, const evrec_clock *clock, int64_t now)
{
	struct outbox_rows rows;

	if (sp->found == NULL) {
		if (now < sp->look_at) {
			return false;
		}
		spooler_look(sp, ob, now);
	} else if (sp->restore_at != INT64_MIN && now >= sp->restore_at) {
		sp->restore_at = INT64_MIN;
		outbox_expect(ob, true);
	}
	outbox_get_rows(ob, &rows);
	if (sp->found == NULL) {
		return false;
	}
	/*
	 * If no row of the file was read yet, nothing is known of it: a process that ends at once writes its own
	 * events.
	 */
	if (rows.closed && !sp->read && sp->cursor != 0) {
		outbox_leave_rows(ob);
	}
	if (may_take_up(sp, &rows, now)) {
		sp->restore_at = spooler_take_up(sp, ob, &rows, clock) ? INT64_MIN : spool_ask_again_at(now);
		outbox_get_rows(ob, &rows);
	}
	if (!is_drained(sp, &rows)) {
		return false;
	}
	spooler_leave_found(sp);
	sp->look_at = now;
	return true;
}

/* If the own file is damaged, the next row makes a new file, and all rows are written again. */
static void replace_own(struct spooler *sp, struct outbox *ob)
{
	if (sp->own != NULL && spool_is_damaged(sp->own)) {
		spooler_drop_journal(sp, ob);
		spooler_give_up_own(sp);
		outbox_rows_lost(ob, true);
	}
}

/* Rows are checked when they are written. While all writes are answered in time, none is, and there is only a journal. */
static void check_journal(struct spooler *sp, struct outbox *ob, int64_t now)
{
	if (sp->journal != NULL && now >= sp->check_at) {
		sp->check_at = time_after(now, JOURNAL_LOOK);
		(void)spooler_own_is_removed(sp, ob);
	}
}

void spooler_step(struct spooler *sp, struct outbox *ob, evrec_clock *clock, bool quick)
{
	int64_t now = clock_monotonic(clock);
	struct outbox_rows rows;

	spooler_set_quick(sp, quick);
	check_journal(sp, ob, now);
	replace_own(sp, ob);
	outbox_get_rows(ob, &rows);
	if (should_forget(sp, &rows, now)) {
		forget_answered(sp, ob, now, !quick);
	}
	while (take_up(sp, ob, clock, now) && !quick) {
	}
	spooler_keep_journal(sp, ob, clock);
	spooler_write_rows(sp, ob, clock);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t spooler_next_due(const struct spooler *sp, struct outbox *ob, int64_t now)
{
	int64_t due = outbox_rows_due(ob, now);
	struct outbox_rows rows;

	due = later(due, sp->write_at);
	/* The driver is not woken when the journal fills. */
	if (sp->journal != NULL && outbox_has_writes(ob)) {
		due = earlier(due, time_after(now, JOURNAL_LOOK));
	}
	outbox_get_rows(ob, &rows);
	if (rows.answered != 0) {
		due = earlier(due, later(time_after(rows.answered_at, FORGET_WAITS), sp->forget_at));
	}
	/* Without room the driver need not wake, as an answer makes room. A refused row may only wait for memory. */
	if (sp->found == NULL) {
		due = earlier(due, sp->look_at);
	} else if (!sp->read && sp->restore_at > now) {
		due = earlier(due, sp->restore_at);
	}
	return due;
}

bool spooler_has_work(const struct spooler *sp, struct outbox *ob, int64_t now)
{
	struct outbox_rows rows;

	outbox_get_rows(ob, &rows);
	return should_forget(sp, &rows, now) ||
	       (sp->found != NULL && (may_take_up(sp, &rows, now) || is_drained(sp, &rows))) ||
	       (now >= sp->write_at && outbox_rows_due(ob, now) <= now);
}

/* ---- the end ---- */

static void finish_file(struct spool *spool)
{
	if (spool == NULL) {
		return;
	}
	if (!spool_is_open(spool)) {
		spool_release(spool);
	} else if (spool_is_empty(spool)) {
		spool_remove(spool);
	} else {
		(void)spool_set_mode(spool, SPOOL_MODE_LAST, NULL);
		spool_close(spool);
	}
}

static void save_kept(struct spooler *sp, struct outbox *ob, const evrec_clock *clock)
{
	struct outbox_rows rows;
	evrec_error err;

	outbox_spool_rows(ob);
	outbox_get_rows(ob, &rows);
	if (rows.kept == 0) {
		return;
	}
	if (!spooler_have_own(sp, SPOOL_MODE_LAST, &err)) {
		spooler_report_lost(ob, &err);
		return;
	}
	/* If the disk is too full for that, the old mode stays. */
	(void)spool_set_mode(sp->own, SPOOL_MODE_LAST, NULL);
	spooler_save_kept(sp, ob, rows.kept, clock);
}

void spooler_save(struct spooler *sp, struct outbox *ob, evrec_clock *clock)
{
	struct outbox_rows rows;

	(void)spooler_own_is_removed(sp, ob);
	replace_own(sp, ob);
	spooler_check_found(sp, ob);
	outbox_keep_all_for_spool(ob);
	outbox_get_rows(ob, &rows);
	if (rows.answered != 0) {
		forget_answered(sp, ob, clock_monotonic(clock), true);
	}
	save_kept(sp, ob, clock);
	spooler_drop_journal(sp, ob);
	finish_file(sp->own);
	if (sp->found != sp->own) {
		finish_file(sp->found);
	}
	free_files(sp);
}
