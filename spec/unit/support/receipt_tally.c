#include "receipt_tally.h"

static unsigned *open_of(struct receipt_tally *tally, struct receipt_id id)
{
	assert_true(id.source < TALLY_SOURCES && id.node < TALLY_NODES);
	return &tally->open[id.source][id.node];
}

void tally_give(struct receipt_tally *tally, struct receipt_id id)
{
	++*open_of(tally, id);
	tally->given++;
}

void tally_collect(struct receipt_tally *tally, const struct entry *entry, bool whole)
{
	uint64_t n = 0;

	for (const struct receipt *r = entry->receipts; r != NULL; r = r->next) {
		assert_true(r->n + r->written != 0);
		assert_true(r->n + r->written <= *open_of(tally, r->id));
		*open_of(tally, r->id) -= r->n + r->written;
		tally->written += r->written;
		n += r->n;
	}
	assert_true(n == 0 || (entry->spooled ? !entry->dropped : entry->dropped));
	assert_true(n <= entry->count);
	if (whole && (entry->dropped || entry->spooled)) {
		assert_int_equal(n, entry->count);
	}
	*(entry->spooled ? &tally->spooled : &tally->dropped[entry->cause]) += n;
}

void tally_check_none_open(const struct receipt_tally *tally)
{
	uint64_t settled = tally->written + tally->spooled;

	for (int i = 0; i < EVREC_CAUSES; i++) {
		settled += tally->dropped[i];
	}
	for (size_t i = 0; i < TALLY_SOURCES; i++) {
		for (size_t j = 0; j < TALLY_NODES; j++) {
			assert_int_equal(tally->open[i][j], 0);
		}
	}
	assert_int_equal(settled, tally->given);
}

void tally_check_stats(const struct receipt_tally *tally, struct outbox *ob)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(tally->written, s.created + s.patched + s.coalesced);
	assert_int_equal(tally->spooled, s.spooled);
}
