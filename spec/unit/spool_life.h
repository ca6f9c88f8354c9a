/*
 * spool_life.h - senders that have a spool: their life, and what they say of it at its end.
 */
#ifndef EVREC_SPOOL_LIFE_H
#define EVREC_SPOOL_LIFE_H

#include "folder.h"
#include "script.h"

static inline void open_spooled(struct fixture *f, bool threadless, const char *path)
{
	open_with(f, threadless, evrec_clock_real(), spooler_new(str_from(path), &item_codec));
}

/* It was joined; what it could not write is spooled, or was dropped. */
static inline void release_with(struct fixture *f, uint64_t spooled, uint64_t closed)
{
	struct outbox_stats stats = stats_of(f);
	struct entry *entry;

	assert_int_equal(stats.spooled, spooled);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], closed);
	assert_int_equal(stats.pending + stats.in_flight, 0);
	while ((entry = outbox_collect(f->ob)) != NULL) {
		outbox_recycle(f->ob, entry);
	}
	sender_release(f->sender);
	assert_int_equal(f->freed, 1);
}

/* Ends it soon. */
static inline void end_with(struct fixture *f, uint64_t spooled, uint64_t closed)
{
	assert_int_equal(sender_join(f->sender, mono() + EVREC_SECOND / 20), spooled + closed == 0);
	release_with(f, spooled, closed);
}

static inline int tear_down(void **state)
{
	return remove_folder(state) + (items_alive != 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, tear_down)

static inline void no_report(struct fixture *f)
{
	struct outbox_report report;

	if (outbox_next_report(f->ob, &report)) {
		fail_msg("%s: %s", report.name, report.message);
	}
}

static inline void report_has(struct fixture *f, const char *words)
{
	struct outbox_report report;

	do {
		if (!outbox_next_report(f->ob, &report)) {
			fail_msg("no report has '%s'", words);
		}
	} while (strstr(report.message, words) == NULL);
	assert_string_equal(report.name, "spool");
}

/* Drives it until all is written: by its thread, or by steps. */
static inline void drive(struct fixture *f)
{
	int64_t deadline = mono() + SOON;
	struct entry *entry;

	sender_begin(f->sender);
	do {
		if (sender_needs_step(f->sender)) {
			sender_step(f->sender);
		}
		while ((entry = outbox_collect(f->ob)) != NULL) {
			assert_false(entry->dropped);
			outbox_recycle(f->ob, entry);
		}
		assert_true(mono() < deadline);
	} while (!outbox_wait(f->ob, mono() + EVREC_SECOND / 100));
	(void)stats_of(f);
}

/* How many rows there are: all of them are taken up, and written. */
static inline unsigned rows_left(const char *path)
{
	struct fixture f;
	unsigned n;

	open_spooled(&f, true, path);
	drive(&f);
	n = (unsigned)stats_of(&f).restored;
	end_with(&f, 0, 0);
	return n;
}

#endif
