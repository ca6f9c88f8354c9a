/* The disk fills up while a process ends: as many events as fit become rows, and the others count as dropped. */
#define _GNU_SOURCE

#include "file_limit.h"
#include "spool_file.h"
#include "spool_fixture.h"

#include <sys/stat.h>

#define WARNINGS 200
#define OTHERS 1800

/* Submits an event named "n<id>-...", with 60 bytes. */
static void submit(struct sender_fixture *f, unsigned id, bool important)
{
	struct fake_write draft = { .count = 1, .important = important };
	const struct occurrence occurrence = {
		.id = id, .verb = VERB_CREATE, .important = important, .now = id, .draft = &draft
	};
	enum evrec_cause cause;

	(void)snprintf(draft.name, sizeof(draft.name), "n%u-%054u", id, 0U);
	assert_true(outbox_submit(f->ob, &occurrence, &cause));
}

static void open_large(struct sender_fixture *f, bool threadless, const char *path)
{
	const evrec_limits limits = limits_without_age(5 * OTHERS);

	sender_fixture_open_limited(f, threadless, evrec_clock_real(),
	                            spooler_new(str_from(path), SPOOL_AT_END, &fake_write_codec), &limits);
}

/* Collects `dropped` entries, none of which is a Warning. */
static void check_no_warning_dropped(struct sender_fixture *f, uint64_t dropped)
{
	struct entry *entry;
	uint64_t n = 0;

	while ((entry = outbox_collect(f->ob, 1)) != NULL) {
		assert_true(entry->dropped && !entry->important);
		assert_int_equal(entry->cause, EVREC_CAUSE_CLOSED);
		outbox_recycle(f->ob, entry);
		n++;
	}
	assert_int_equal(n, dropped);
}

/* The next process restores and writes all rows, every Warning among them. */
static void restore_all(const char *path, uint64_t spooled)
{
	struct sender_fixture f;

	open_large(&f, true, path);
	spool_fixture_drain(&f);
	assert_int_equal(sender_fixture_stats(&f).restored, spooled);
	assert_int_equal(sender_fixture_stats(&f).created, spooled);
	for (unsigned id = 1; id <= WARNINGS; id++) {
		assert_int_equal(f.protocol->sent_by_id[id], 1);
	}
	spool_fixture_check_silent(&f);
	spool_fixture_end(&f, 0, 0);
}

static uint64_t fill_disk(const char *path, bool threadless, rlim_t bytes)
{
	struct outbox_stats stats;
	struct sender_fixture f;

	open_large(&f, threadless, path);
	f.protocol->silent = true;
	/* The Warnings are the newest. */
	for (unsigned id = 1001; id <= 1000 + OTHERS; id++) {
		submit(&f, id, false);
	}
	for (unsigned id = 1; id <= WARNINGS; id++) {
		submit(&f, id, true);
	}
	if (!threadless) {
		sender_fixture_wait_sent(&f, 4);
	}
	file_limit_set(bytes);
	assert_false(sender_join(f.sender, 0));
	file_limit_set(RLIM_INFINITY);
	stats = sender_fixture_stats(&f);
	assert_int_equal(stats.spooled + stats.dropped[EVREC_CAUSE_CLOSED], WARNINGS + OTHERS);
	spool_fixture_check_message(&f, "the spool could not keep all events: ");
	check_no_warning_dropped(&f, stats.dropped[EVREC_CAUSE_CLOSED]);
	spool_fixture_release(&f, stats.spooled, stats.dropped[EVREC_CAUSE_CLOSED]);
	return stats.spooled;
}

static void test_as_many_events_as_fit_are_kept(void **state)
{
	const rlim_t bytes = 100000;
	const char *path = tmpdir_path(*state, "spool");
	uint64_t spooled;
	struct stat st;

	for (int threadless = 0; threadless <= 1; threadless++) {
		spooled = fill_disk(path, threadless != 0, bytes);
		assert_true(spooled > WARNINGS && spooled < WARNINGS + OTHERS);
		assert_int_equal(stat(spool_file_in(path), &st), 0);
		assert_true((rlim_t)st.st_size <= bytes && (rlim_t)st.st_size > bytes - 2 * 4096);
		restore_all(path, spooled);
		assert_int_equal(rmdir(path), 0);
	}
}

/* Pads a row to the size of its fake write. */
static bool padded_serialize(const void *item, struct buf *out)
{
	bool ok = fake_write_serialize(item, out);

	for (unsigned i = ((const struct fake_write *)item)->size / 10; i > 0; i--) {
		buf_put_str(out, EVREC_STR(" padding.."));
	}
	return ok && !out->failed;
}

/* An event too large for the disk does not stop smaller ones behind it. */
static void test_large_event_does_not_stop_smaller_ones(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits limits = limits_without_age(100);
	struct spool_codec codec = fake_write_codec;
	struct entry *entry;
	struct sender_fixture f;

	codec.serialize = padded_serialize;
	sender_fixture_open_limited(&f, true, evrec_clock_real(), spooler_new(str_from(path), SPOOL_AT_END, &codec),
	                            &limits);
	f.protocol->silent = true;
	for (unsigned id = 1; id <= 50; id++) {
		struct fake_write draft = { .count = 1, .important = true, .size = id == 1 || id == 20 ? 200000 : 0 };
		const struct occurrence occurrence = {
			.id = id, .verb = VERB_CREATE, .important = true, .now = id, .draft = &draft
		};
		enum evrec_cause cause;

		(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
		assert_true(outbox_submit(f.ob, &occurrence, &cause));
	}
	file_limit_set(100000);
	assert_false(sender_join(f.sender, 0));
	file_limit_set(RLIM_INFINITY);
	spool_fixture_check_message(&f, "the spool could not keep all events: ");
	assert_int_equal(sender_fixture_stats(&f).spooled, 48);
	while ((entry = outbox_collect(f.ob, 1)) != NULL) {
		assert_true(entry->id == 1 || entry->id == 20);
		outbox_recycle(f.ob, entry);
	}
	spool_fixture_release(&f, 48, 2);
	assert_int_equal(spool_fixture_count_rows(path), 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_as_many_events_as_fit_are_kept),
		SPOOL_TEST(test_large_event_does_not_stop_smaller_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
