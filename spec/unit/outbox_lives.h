/*
 * outbox_lives.h - from one life of an outbox to the next: what was left goes into a spool that is an array here, and
 * comes back as far as there is room.
 */
#ifndef EVREC_OUTBOX_LIVES_H
#define EVREC_OUTBOX_LIVES_H

#include "outbox_world.h"

static inline struct row *row_of(struct world *w, unsigned id)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (w->rows[i].there && w->rows[i].saved.row == id) {
			return &w->rows[i];
		}
	}
	return NULL;
}

static inline struct row *new_row(struct world *w)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!w->rows[i].there) {
			return &w->rows[i];
		}
	}
	fail_msg("too many rows");
	return NULL;
}

/* What was answered is forgotten, and nothing else. */
static inline void forget_rows(struct world *w)
{
	int64_t rows[ROWS];
	size_t n = outbox_take_answered_rows(w->ob, rows, ROWS);

	while (n-- > 0) {
		struct row *row = row_of(w, (unsigned)rows[n]);

		assert_true(row != NULL && row->loaded);
		assert_null(model_find(&w->m, (unsigned)rows[n], true));
		assert_null(model_find(&w->m, (unsigned)rows[n], false));
		row->there = false;
	}
}

/* True if all rows are in the outbox by now. */
static inline bool restore_rows(struct world *w)
{
	bool all = true;

	for (size_t i = 0; i < ROWS; i++) {
		struct row *row = &w->rows[i];
		const bool is_post = row->saved.verb == VERB_CREATE;
		const struct model_write write = { .id = (unsigned)row->saved.row,
			                           .n = row->saved.count,
			                           .arrived = is_post ? row->saved.arrived : 0,
			                           .lingers = !is_post && row->saved.arrived != 0,
			                           .important = row->saved.important,
			                           .last = row->saved.last,
			                           .bytes = w->m.entry_bytes + row->item.size };

		if (!row->there || row->loaded) {
			continue;
		}
		row->loaded = model_has_room(&w->m, write.bytes);
		all = all && row->loaded;
		row->saved.item = item_make(&row->item);
		outbox_restore(w->ob, &row->saved, true);
		if (row->loaded) {
			model_restore(&w->m, &write);
		}
		model_check(&w->m, w->ob);
	}
	return all;
}

/* An entry that is left has all that the model has of its event. */
static inline void leave_row(struct world *w, const struct entry *entry)
{
	const unsigned id = (unsigned)entry->id;
	struct row *row = row_of(w, id);
	unsigned n = 0, arrived = 0;
	bool lingers = false;

	for (size_t i = 0; i < w->m.len; i++) {
		if (w->m.writes[i].id == id) {
			n += w->m.writes[i].n;
			arrived += w->m.writes[i].arrived;
			lingers = lingers || w->m.writes[i].lingers || w->m.writes[i].told != 0;
		}
	}
	assert_int_equal(entry->count, n);
	if (entry->verb == VERB_PATCH) {
		arrived = lingers ? n : 0;
	}
	assert_int_equal(entry->arrived, arrived);
	assert_int_equal(entry->row, row == NULL ? 0 : id);
	row = row == NULL ? new_row(w) : row;
	*row = (struct row){ .item = *(const struct item *)entry->item, .there = true };
	row->saved = (struct outbox_saved){ .row = id,
		                            .verb = entry->verb,
		                            .count = entry->count,
		                            .arrived = entry->arrived,
		                            .important = entry->important,
		                            .last = entry->last };
}

/* What is in flight may have arrived, for all that this life will ever know. */
static inline void lose_answers(struct world *w)
{
	for (size_t i = 0; i < FLYING; i++) {
		const struct entry *entry = w->flying[i];
		struct model_write *write;

		if (entry == NULL) {
			continue;
		}
		w->flying[i] = NULL;
		write = model_find(&w->m, (unsigned)entry->id, true);
		if (entry->verb == VERB_CREATE && write->arrived == 0) {
			write->arrived = write->n;
		}
		write->lingers = write->lingers || entry->verb == VERB_PATCH;
		if (entry->verb == VERB_PATCH && below(w, 3) == 0) {
			(void)detain(w, entry);
		} else if (below(w, 2) == 0) {
			(void)serve(w, entry, NULL);
		}
	}
}

/* All that is pending goes into the spool, once. */
static inline void end_life(struct world *w)
{
	const struct entry *entry = NULL;
	struct outbox_stats before, after;

	lose_answers(w);
	outbox_get_stats(w->ob, &before);
	outbox_leave_all(w->ob);
	while ((entry = outbox_next_left(w->ob, entry)) != NULL) {
		leave_row(w, entry);
	}
	forget_rows(w);
	for (size_t i = 0; i < ROWS; i++) {
		assert_false(w->rows[i].there && w->rows[i].loaded); /* neither answered nor left */
	}
	outbox_spooled(w->ob);
	assert_equation(w->ob);
	outbox_get_stats(w->ob, &after);
	assert_int_equal(after.spooled, before.pending);
	assert_int_equal(after.pending + after.bytes, 0);
	outbox_free(w->ob);
	assert_int_equal(items_alive, 0);
}

#endif
