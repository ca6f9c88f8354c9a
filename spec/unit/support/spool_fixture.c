#include "spool_fixture.h"

#include "spool/journal.h"
#include "spool/spool_folder.h"

const char *spool_fixture_die(const char *folder, unsigned id)
{
	static char pending[1100];
	struct outbox *ob = fake_write_outbox(10);
	struct spool *spool = spool_folder_new_file(folder);
	struct journal *journal;
	evrec_error err;

	assert_true(spool_open(spool, SPOOL_MODE_QUICK, &err));
	snprintf(pending, sizeof(pending), "%s", spool_pending_path(spool));
	journal = journal_new(pending, 1 << 20, &fake_write_sure_codec, &err);
	assert_non_null(journal);
	outbox_set_journal(ob, journal_of_outbox(journal));
	assert_true(fake_write_submit(ob, id, 1));
	outbox_set_journal(ob, NULL);
	journal_free(journal, false);
	spool_free(spool);
	outbox_free(ob);
	return pending;
}

void spool_fixture_open(struct sender_fixture *f, bool threadless, const char *path)
{
	sender_fixture_open_spooled(f, threadless, evrec_clock_real(),
	                            spooler_new(str_from(path), SPOOL_AT_END, &fake_write_codec));
}

void spool_fixture_release(struct sender_fixture *f, uint64_t spooled, uint64_t closed)
{
	struct outbox_stats stats = sender_fixture_stats(f);
	struct entry *entry;

	assert_int_equal(stats.spooled, spooled);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], closed);
	assert_int_equal(stats.pending + stats.in_flight, 0);
	while ((entry = outbox_collect(f->ob, 1)) != NULL) {
		outbox_recycle(f->ob, entry);
	}
	sender_release(f->sender);
	assert_int_equal(f->freed, 1);
}

void spool_fixture_end(struct sender_fixture *f, uint64_t spooled, uint64_t closed)
{
	/* The sender waits for its deadline only if it cannot write all. */
	const bool writes_all = spooled + closed == 0;

	assert_int_equal(sender_join(f->sender, unit_mono() + (writes_all ? SOON : EVREC_SECOND / 20)), writes_all);
	spool_fixture_release(f, spooled, closed);
}

int spool_fixture_teardown(void **state)
{
	return tmpdir_teardown(state) + (fake_writes.alive != 0);
}

void spool_fixture_check_silent(struct sender_fixture *f)
{
	struct outbox_message message;

	if (outbox_next_message(f->ob, &message)) {
		fail_msg("%s: %s", message.name, message.message);
	}
}

void spool_fixture_check_message(struct sender_fixture *f, const char *words)
{
	struct outbox_message message;

	do {
		if (!outbox_next_message(f->ob, &message)) {
			fail_msg("no message has '%s'", words);
		}
	} while (strstr(message.message, words) == NULL);
	assert_string_equal(message.name, "spool");
}

void spool_fixture_drain(struct sender_fixture *f)
{
	int64_t deadline = unit_mono() + SOON;
	struct entry *entry;

	sender_begin(f->sender);
	do {
		if (sender_needs_step(f->sender)) {
			sender_step(f->sender);
		}
		while ((entry = outbox_collect(f->ob, 1)) != NULL) {
			assert_false(entry->dropped);
			outbox_recycle(f->ob, entry);
		}
		assert_true(unit_mono() < deadline);
	} while (!outbox_wait(f->ob, unit_mono() + EVREC_SECOND / 100));
	(void)sender_fixture_stats(f);
}

unsigned spool_fixture_count_rows(const char *path)
{
	struct sender_fixture f;
	unsigned n;

	spool_fixture_open(&f, true, path);
	spool_fixture_drain(&f);
	n = (unsigned)sender_fixture_stats(&f).restored;
	spool_fixture_end(&f, 0, 0);
	return n;
}
