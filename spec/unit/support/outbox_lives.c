#include "outbox_lives.h"

static struct spooled_write *row_of(struct outbox_world *w, unsigned id)
{
	for (size_t i = 0; i < WORLD_ROWS; i++) {
		if (w->rows[i].there && w->rows[i].saved.row == id) {
			return &w->rows[i];
		}
	}
	return NULL;
}

static struct spooled_write *new_row(struct outbox_world *w)
{
	for (size_t i = 0; i < WORLD_ROWS; i++) {
		if (!w->rows[i].there) {
			return &w->rows[i];
		}
	}
	fail_msg("too many rows");
	return NULL;
}

void world_forget_rows(struct outbox_world *w)
{
	int64_t rows[WORLD_ROWS];
	size_t n = outbox_get_answered_rows(w->ob, 0, rows, WORLD_ROWS);

	outbox_rows_forgotten(w->ob, n);
	while (n-- > 0) {
		struct spooled_write *row = row_of(w, (unsigned)rows[n]);

		assert_true(row != NULL && row->loaded);
		assert_null(model_find(&w->m, (unsigned)rows[n], true));
		assert_null(model_find(&w->m, (unsigned)rows[n], false));
		row->there = false;
	}
}

bool world_restore_rows(struct outbox_world *w, void (*between)(struct outbox_world *w))
{
	for (size_t i = 0; i < WORLD_ROWS; i++) {
		struct spooled_write *row = &w->rows[i];
		const bool is_post = row->saved.verb == VERB_CREATE;
		const struct model_write write = { .id = (unsigned)row->saved.row,
			                           .n = row->saved.count,
			                           .maybe_received = is_post ? row->saved.maybe_received : 0,
			                           .maybe_late = !is_post && row->saved.maybe_received != 0,
			                           .important = row->saved.important,
			                           .last = row->saved.last,
			                           .bytes = w->m.entry_bytes + row->item.size };

		if (!row->there || row->loaded) {
			continue;
		}
		row->saved.item = fake_write_make(&row->item);
		if (between != NULL) {
			between(w);
		}
		row->loaded = outbox_restore(w->ob, &row->saved);
		assert_int_equal(row->loaded, model_has_room(&w->m, write.bytes));
		if (!row->loaded) {
			return false;
		}
		model_restore(&w->m, &write);
		model_check(&w->m, w->ob);
	}
	return true;
}

/* Stores a kept entry as a row. The entry has all occurrences that the model has of its event. */
static void spool_row_of(struct outbox_world *w, const struct entry *entry)
{
	const unsigned id = (unsigned)entry->id;
	struct spooled_write *row = row_of(w, id);
	unsigned n = 0, received = 0;
	bool maybe_late = false;

	for (size_t i = 0; i < w->m.len; i++) {
		if (w->m.writes[i].id == id) {
			n += w->m.writes[i].n;
			received += w->m.writes[i].maybe_received;
			maybe_late = maybe_late || w->m.writes[i].maybe_late || w->m.writes[i].acked != 0;
		}
	}
	assert_int_equal(entry->count, n);
	if (entry->verb == VERB_PATCH) {
		received = maybe_late ? n : 0;
	}
	assert_int_equal(entry->maybe_received, received);
	assert_int_equal(entry->row, row == NULL ? 0 : id);
	row = row == NULL ? new_row(w) : row;
	*row = (struct spooled_write){ .item = *(const struct fake_write *)entry->item, .there = true };
	row->saved = (struct outbox_saved){ .row = id,
		                            .verb = entry->verb,
		                            .count = entry->count,
		                            .maybe_received = entry->maybe_received,
		                            .important = entry->important,
		                            .last = entry->last };
}

/* Entries in flight get no answer in this life; the server may have received them, and carries out some. */
static void lose_answers(struct outbox_world *w)
{
	for (size_t i = 0; i < WORLD_IN_FLIGHT; i++) {
		const struct entry *entry = w->in_flight[i];
		struct model_write *write;

		if (entry == NULL) {
			continue;
		}
		w->in_flight[i] = NULL;
		write = model_find(&w->m, (unsigned)entry->id, true);
		if (entry->verb == VERB_CREATE && write->maybe_received == 0) {
			write->maybe_received = write->n;
		}
		write->maybe_late = write->maybe_late || entry->verb == VERB_PATCH;
		if (entry->verb == VERB_PATCH && world_below(w, 3) == 0) {
			(void)world_hold_patch(w, entry);
		} else if (world_below(w, 2) == 0) {
			(void)world_serve(w, entry, NULL);
		}
	}
}

/* Spooled entries come back for their receipts, others because they were dropped or answered at the end. */
static void collect_spooled(struct outbox_world *w)
{
	struct outbox_stats stats;
	struct entry *entry;

	while ((entry = outbox_collect(w->ob, 1)) != NULL) {
		world_collected(w, entry);
		outbox_recycle(w->ob, entry);
	}
	tally_check_none_open(&w->tally);
	outbox_get_stats(w->ob, &stats);
	if (w->receipts == 2 && stats.restored == 0) {
		tally_check_stats(&w->tally, w->ob);
	}
	w->tally = (struct receipt_tally){ 0 };
}

void world_end_life(struct outbox_world *w)
{
	const struct entry *entry = NULL;
	struct outbox_stats before, after;

	lose_answers(w);
	outbox_get_stats(w->ob, &before);
	outbox_keep_all_for_spool(w->ob);
	while ((entry = outbox_next_kept(w->ob, entry)) != NULL) {
		spool_row_of(w, entry);
	}
	world_forget_rows(w);
	for (size_t i = 0; i < WORLD_ROWS; i++) {
		assert_false(w->rows[i].there && w->rows[i].loaded); /* every loaded row was answered or kept */
	}
	outbox_spooled(w->ob, NULL);
	outbox_check_equation(w->ob);
	collect_spooled(w);
	outbox_get_stats(w->ob, &after);
	assert_int_equal(after.spooled, before.pending + before.counted);
	assert_int_equal(after.pending + after.counted + after.bytes, 0);
	outbox_free(w->ob);
	assert_int_equal(fake_writes.alive, 0);
}
