#include "base/clock.h"
#include "spool/spooler_inner.h"

#define MISFITS_MAX 8
#define BATCHES_A_STEP 8 /* unless it is a quick one */
#define IN_USE_WAIT (EVREC_SECOND / 20)

void spooler_report_lost(struct outbox *ob, const evrec_error *err)
{
	spooler_report(ob, "the spool could not keep all events", err);
}

/* ---- transactions ---- */

/* A damaged `found` has no more transactions. */
static bool has_two(const struct spooler *sp)
{
	return sp->found != NULL && sp->own != sp->found && !spool_is_damaged(sp->found);
}

bool spooler_begin(struct spooler *sp, evrec_error *err)
{
	return (sp->own == NULL || !spool_is_open(sp->own) || spool_begin(sp->own, err)) &&
	       (!has_two(sp) || spool_begin(sp->found, err));
}

/*
 * The own file last, as it alone may get new rows: if the first commit fails, there are none, and if the second one
 * fails, the rows of `found` are written again, with the same numbers.
 */
bool spooler_commit(struct spooler *sp, evrec_error *err)
{
	return (!has_two(sp) || spool_commit(sp->found, err)) &&
	       (sp->own == NULL || !spool_is_open(sp->own) || spool_commit(sp->own, err));
}

static void rollback(struct spool *spool)
{
	if (spool != NULL && spool_is_open(spool)) {
		spool_rollback(spool);
	}
}

void spooler_rollback(struct spooler *sp)
{
	rollback(sp->own);
	if (sp->found != sp->own) {
		rollback(sp->found);
	}
}

/* `text` is the row's item, serialized. */
static bool put_row(struct spooler *sp, const struct outbox_row *row, evrec_str text, const struct spool_moment *now,
                    evrec_error *err)
{
	struct spool_changes changes;
	struct spool_row line = {
		.verb = row->verb,
		.count = row->count,
		.maybe_received = row->maybe_received,
		.last = spool_moment_before(now->wall, time_since(now->monotonic, row->last)),
		.item = text,
	};
	struct spool *spool;

	sp->codec.get_changes(row->item, NULL, &changes);
	line.time = changes.last;
	spool = spooler_file_of(sp, row->row, &line.seq);
	/* In a damaged file of another process the row stays as it is. */
	return (row->row > 0 && spool_is_damaged(spool)) || spool_put(spool, &line, err);
}

/* ---- rows that are due ---- */

/* Writes the state, so that it has the names in the rows about to be committed. False: it is in use. */
static bool knows_names(struct spooler *sp, struct outbox *ob, const struct spool_moment *now)
{
	return sp->state == NULL || state_file_write_ahead(sp->state, ob, now->monotonic, sp->quick);
}

/*
 * Writes up to `max` rows in one transaction; *n: how many. False: none was written; *in_use: because the state is in
 * use.
 */
static bool write_batch(struct spooler *sp, struct outbox *ob, size_t max, const struct spool_moment *now, size_t *n,
                        bool *in_use, evrec_error *err)
{
	enum outbox_row_found found = OUTBOX_ROW;
	bool ok = spooler_begin(sp, err);
	struct buf text = { 0 };
	struct outbox_row row;

	for (*n = 0; ok && *n < max; ++*n) {
		found = outbox_next_row(ob, now->monotonic, sp->next_number, &row);
		if (found != OUTBOX_ROW) {
			break;
		}
		sp->next_number += row.row == -sp->next_number;
		buf_clear(&text);
		ok = sp->codec.serialize(row.item, &text) || error_set(err, EVREC_ENOMEM, "no memory") == 0;
		ok = ok && put_row(sp, &row, buf_str(&text), now, err);
		outbox_discard(ob, row.item);
	}
	buf_free(&text);
	*in_use = ok && *n != 0 && !knows_names(sp, ob, now);
	ok = ok && !*in_use && spooler_commit(sp, err);
	if (!ok) {
		spooler_rollback(sp);
	}
	outbox_rows_written(ob, ok);
	if (ok && found == OUTBOX_NO_MEMORY) {
		return error_set(err, EVREC_ENOMEM, "no memory") == 0;
	}
	return ok;
}

static size_t batch_size(const struct spooler *sp)
{
	return sp->batch != 0 && sp->batch < spooler_batch(sp) ? sp->batch : spooler_batch(sp);
}

/* After a failed transaction, tries again with half of its rows; with a single row, after a pause. */
static bool write_some(struct spooler *sp, struct outbox *ob, const struct spool_moment *now, evrec_error *err)
{
	const unsigned batches = sp->quick ? 1 : BATCHES_A_STEP;
	size_t n = 1, max;
	bool in_use;

	for (unsigned i = 0; i < batches && n != 0; i++) {
		max = batch_size(sp);
		while (!write_batch(sp, ob, max, now, &n, &in_use, err)) {
			if (in_use) {
				sp->write_at = time_after(now->monotonic, IN_USE_WAIT);
				return true;
			}
			if (max == 1) {
				return false;
			}
			max /= 2;
			sp->batch = max;
		}
		sp->batch = 2 * max;
	}
	return true;
}

static bool is_removed(struct spooler *sp, struct outbox *ob, struct spool *spool)
{
	evrec_error err;

	if (spool_check_there(spool, &err)) {
		return false;
	}
	spooler_report_once(ob, "events are in memory alone", &err, &sp->failure);
	return true;
}

bool spooler_own_is_removed(struct spooler *sp, struct outbox *ob)
{
	return sp->own != NULL && !spool_is_damaged(sp->own) && is_removed(sp, ob, sp->own);
}

void spooler_check_found(struct spooler *sp, struct outbox *ob)
{
	sp->found_is_removed = sp->found != NULL && sp->found != sp->own && is_removed(sp, ob, sp->found);
	if (sp->found_is_removed) {
		outbox_rows_lost(ob, false);
	}
}

void spooler_write_rows(struct spooler *sp, struct outbox *ob, const evrec_clock *clock)
{
	const struct spool_moment now = spool_moment_now(clock);
	evrec_error err;

	if (now.monotonic < sp->write_at || outbox_rows_due(ob, now.monotonic) > now.monotonic) {
		return;
	}
	/* The next step makes another file. */
	if (spooler_own_is_removed(sp, ob)) {
		return;
	}
	if (spooler_have_own(sp, spooler_mode(sp), &err) && write_some(sp, ob, &now, &err)) {
		sp->failure.message[0] = '\0';
		return;
	}
	sp->write_at = spool_ask_again_at(now.monotonic);
	spooler_report_once(ob, "events are in memory alone", &err, &sp->failure);
}

/* ---- the end ---- */

static bool put(struct spooler *sp, const struct entry *entry, const struct spool_moment *now, struct buf *text,
                evrec_error *err)
{
	const bool fresh = entry->row == 0 || (entry->row > 0 && sp->found_is_removed);
	const struct outbox_row row = {
		.row = fresh ? -sp->next_number : entry->row,
		.verb = entry->verb,
		.count = entry->count,
		.maybe_received = entry->maybe_received,
		.last = entry->last,
		.item = entry->item,
	};

	sp->next_number += fresh;
	buf_clear(text);
	if (!sp->codec.serialize(entry->item, text)) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return put_row(sp, &row, buf_str(text), now, err);
}

/* Writes the first `max` kept entries to the files, or none. Returns the last one of them; NULL: none, see *err. */
static const struct entry *put_batch(struct spooler *sp, struct outbox *ob, size_t max, const struct spool_moment *now,
                                     evrec_error *err)
{
	const struct entry *last = NULL, *next = outbox_next_kept(ob, NULL);
	bool ok = spooler_begin(sp, err);
	struct buf text = { 0 };

	for (size_t n = 0; ok && n < max && next != NULL; n++) {
		last = next;
		ok = put(sp, last, now, &text, err);
		next = outbox_next_kept(ob, last);
	}
	buf_free(&text);
	if (ok && spooler_commit(sp, err)) {
		return last;
	}
	spooler_rollback(sp);
	return NULL;
}

/*
 * In one transaction if all entries fit. Else a transaction that fails is tried again with half of its rows, and one
 * that succeeds is followed by one of twice as many. A single row that does not fit is moved behind the others, but
 * only a few times: on a full disk no other fits either.
 */
void spooler_save_kept(struct spooler *sp, struct outbox *ob, size_t n, const evrec_clock *clock)
{
	const struct spool_moment now = spool_moment_now(clock);
	const size_t all = n;
	unsigned misfits = 0;
	evrec_error err;

	/* The end does not wait for a state that is in use. */
	(void)knows_names(sp, ob, &now);
	while (misfits < MISFITS_MAX && outbox_next_kept(ob, NULL) != NULL) {
		const struct entry *last = put_batch(sp, ob, n, &now, &err);

		if (last != NULL) {
			outbox_spooled(ob, last);
			n = n < all / 2 ? 2 * n : all;
		} else if (n > 1) {
			n /= 2;
		} else {
			outbox_defer_kept(ob);
			misfits++;
		}
	}
	if (outbox_next_kept(ob, NULL) != NULL) {
		spooler_report_lost(ob, &err);
	}
}
