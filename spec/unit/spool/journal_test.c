/* A journal: what it notes is found by the next process, whatever became of the file. */
#define _GNU_SOURCE

#include "alloc_failure.h"
#include "fake_write.h"
#include "spool_file.h"

#include "event/event.h"
#include "spool/journal_import.h"
#include "spool/journal_inner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANY 100000

static const evrec_answer created = { .status = 201 };

struct fixture {
	struct outbox *ob;
	struct journal *journal;
	char path[256], pending[264];
};

static void begin_with(struct fixture *f, const char *folder, size_t max_bytes, const struct spool_codec *codec)
{
	evrec_error err;

	snprintf(f->path, sizeof(f->path), "%s", spool_file_make_folder(folder));
	snprintf(f->pending, sizeof(f->pending), "%s-pending", f->path);
	f->ob = fake_write_outbox(MANY);
	outbox_expect(f->ob, true);
	f->journal = journal_new(f->pending, max_bytes, codec, &err);
	assert_non_null(f->journal);
	outbox_set_journal(f->ob, journal_of_outbox(f->journal));
}

static void begin(struct fixture *f, const char *folder, size_t max_bytes)
{
	begin_with(f, folder, max_bytes, &fake_write_codec);
}

/* As by SIGKILL: nothing is taken back. */
static void die(struct fixture *f)
{
	journal_free(f->journal, false);
	outbox_set_journal(f->ob, NULL);
	outbox_free(f->ob);
}

struct found {
	unsigned rows, counts, damaged;
	char last[256];
};

static bool count_row(void *ctx, const struct spool_row *row)
{
	struct found *found = ctx;

	found->rows++;
	found->counts += row->count;
	snprintf(found->last, sizeof(found->last), "%.*s", (int)row->item.len, row->item.data);
	return true;
}

static struct found import(const struct fixture *f)
{
	struct spool *spool = spool_file_open(f->path);
	struct found found = { 0 };
	evrec_error err;

	assert_true(journal_import(f->pending, spool, &fake_write_codec, NULL, &found.damaged, &err));
	assert_int_equal(access(f->pending, F_OK), 0);
	assert_true(journal_remove(f->pending, &err));
	assert_int_not_equal(access(f->pending, F_OK), 0);
	assert_true(spool_read(spool, 0, INT64_MAX, MANY, count_row, &found, &err));
	spool_remove(spool);
	spool_free(spool);
	return found;
}

static void test_pending_writes_are_found(void **state)
{
	struct fixture f;
	struct found found;

	begin(&f, tmpdir_path(*state, "spool"), 1 << 20);
	for (unsigned i = 1; i <= 10; i++) {
		fake_write_submit(f.ob, i, 1);
		fake_write_submit(f.ob, i, 2);
	}
	fake_write_defer(f.ob, 11, 1);
	answer_entry_as_kubernetes(f.ob, outbox_take(f.ob, T0), &created, T0);
	assert_non_null(outbox_take(f.ob, T0));
	fake_write_submit(f.ob, 2, 3); /* a follow-up */
	die(&f);
	found = import(&f);
	assert_int_equal(found.rows, 10);
	assert_int_equal(found.counts, 9 * 2 + 1 + 1);
	assert_int_equal(found.damaged, 0);
}

/* Also while it is in flight: its answer comes when there may be no journal any more. */
static void test_what_was_dropped_is_not_found(void **state)
{
	struct fixture f;
	struct entry *entry;

	begin(&f, tmpdir_path(*state, "spool"), 1 << 20);
	fake_write_submit(f.ob, 1, 1);
	entry = outbox_take(f.ob, T0);
	fake_write_submit(f.ob, 1, 2);
	fake_write_submit(f.ob, 2, 1);
	outbox_drop_all(f.ob, EVREC_CAUSE_CLOSED);
	outbox_set_journal(f.ob, NULL);
	answer_entry_as_kubernetes(f.ob, entry, &created, T0);
	die(&f);
	assert_int_equal(import(&f).rows, 0);
}

/* Overwrites what is at `text` in the file. */
static void damage(const char *path, const char *text)
{
	static char bytes[1 << 20];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	char *at = memmem(bytes, (size_t)len, text, strlen(text));

	assert_non_null(at);
	assert_int_equal(pwrite(fd, "?", 1, at - bytes), 1);
	(void)close(fd);
}

static void test_damaged_notes_are_left_out_and_counted(void **state)
{
	struct fixture f;
	struct found found;

	begin(&f, tmpdir_path(*state, "spool"), 1 << 20);
	for (unsigned i = 1; i <= 3; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	die(&f);
	damage(f.pending, "n2 1 0 0");
	found = import(&f);
	assert_int_equal(found.rows, 2);
	assert_int_equal(found.damaged, 1);
}

/* Whatever is in the file: the import ends, and what it makes rows of has a checksum. */
static void test_random_bytes_do_no_harm(void **state)
{
	uint64_t random = unit_seed();
	struct fixture f;

	for (unsigned n = 0; n < 50; n++) {
		unsigned changes = 1 + (unsigned)(unit_random(&random) % 50);
		int fd;

		begin(&f, tmpdir_path(*state, "spool"), 64 * JOURNAL_BLOCK);
		for (unsigned i = 1; i <= 20; i++) {
			fake_write_submit(f.ob, i, 1);
		}
		die(&f);
		fd = open(f.pending, O_RDWR | O_CLOEXEC);
		for (; changes != 0; changes--) {
			const unsigned char byte = (unsigned char)unit_random(&random);
			const off_t at = JOURNAL_BLOCK + (off_t)(unit_random(&random) % (63 * JOURNAL_BLOCK));

			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		(void)close(fd);
		assert_true(import(&f).rows <= 20);
	}
}

/* Without room some writes have no note; once others are answered, they have one. */
static void test_a_full_journal_takes_no_more(void **state)
{
	struct fixture f;
	struct entry *entry;
	evrec_error err;

	begin(&f, tmpdir_path(*state, "spool"), 64 * JOURNAL_BLOCK);
	for (unsigned i = 1; i <= 100; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	assert_false(journal_enlarge(f.journal, &err));
	assert_string_equal(err.message, "");
	while ((entry = outbox_take(f.ob, T0)) != NULL && entry->id <= 90) {
		answer_entry_as_kubernetes(f.ob, entry, &created, T0);
	}
	assert_true(journal_enlarge(f.journal, &err));
	outbox_set_journal(f.ob, journal_of_outbox(f.journal));
	die(&f);
	assert_int_equal(import(&f).rows, 10);
}

static void test_it_grows(void **state)
{
	struct fixture f;
	struct stat st;
	evrec_error err;

	begin(&f, tmpdir_path(*state, "spool"), 16 << 20);
	for (unsigned i = 1; i <= 20000; i++) {
		fake_write_submit(f.ob, i, 1);
		if (i % 1000 == 0 && journal_enlarge(f.journal, &err)) {
			outbox_set_journal(f.ob, journal_of_outbox(f.journal));
		}
	}
	assert_int_equal(stat(f.pending, &st), 0);
	assert_int_equal(st.st_size, 16 << 20);
	die(&f);
	assert_int_equal(import(&f).rows, 20000);
}

/* The file cannot be as large as it has to be: there is no journal, and no file. */
static void test_a_full_disk_gives_no_journal(void **state)
{
	const struct rlimit little = { 100000, RLIM_INFINITY };
	struct rlimit before;
	const char *path = spool_file_make_folder(tmpdir_path(*state, "spool"));
	struct journal *journal;
	evrec_error err;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	journal = journal_new(path, 16 << 20, &fake_write_codec, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_null(journal);
	assert_non_null(strstr(err.message, "File too large"));
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_another_version_stays(void **state)
{
	struct found found = { 0 };
	struct spool *spool;
	struct fixture f;
	evrec_error err;
	int fd;

	begin(&f, tmpdir_path(*state, "spool"), 1 << 20);
	fake_write_submit(f.ob, 1, 1);
	die(&f);
	fd = open(f.pending, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "?", 1, offsetof(struct journal_start, layout)), 1);
	(void)close(fd);
	spool = spool_file_open(f.path);
	assert_false(journal_import(f.pending, spool, &fake_write_codec, NULL, &found.damaged, &err));
	assert_non_null(strstr(err.message, "another version of evrec"));
	assert_int_equal(access(f.pending, F_OK), 0);
	spool_remove(spool);
	spool_free(spool);
}

/* ---- counts that a state may lack ---- */

static unsigned unpacked, fails_at;

static void *unpack_some(evrec_str text)
{
	return ++unpacked == fails_at ? NULL : fake_write_codec.unpack(text);
}

/* It is done again, so each write is brought once. */
static void test_an_import_that_fails_brings_nothing(void **state)
{
	struct spool_codec codec = fake_write_sure_codec;
	struct outbox *ob = fake_write_outbox(MANY);
	struct fixture f;
	struct spool *spool;
	unsigned damaged;
	evrec_error err;

	codec.unpack = unpack_some;
	begin_with(&f, tmpdir_path(*state, "spool"), 1 << 20, &codec);
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	die(&f);
	outbox_send_rows_first(ob);
	spool = spool_file_open(f.path);
	unpacked = 0;
	fails_at = 2;
	assert_false(journal_import(f.pending, spool, &codec, ob, &damaged, &err));
	assert_int_equal(fake_write_count_brought(ob), 0);
	assert_true(journal_import(f.pending, spool, &codec, ob, &damaged, &err));
	assert_int_equal(fake_write_count_brought(ob), 2);
	assert_int_equal(damaged, 0);
	spool_remove(spool);
	spool_free(spool);
	outbox_free(ob);
}

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

/* A real write with all that a follow-up and a renaming change. */
static void test_an_event_is_the_same_again(void **state)
{
	const evrec_pair labels[] = { { EVREC_STR("app"), EVREC_STR("web") }, { EVREC_STR("empty"), EVREC_STR("") } };
	struct spool_changes changes, later = { .last = 7 * EVREC_SECOND, .count = 9 };
	evrec_fields event, other;
	struct write_draft draft = { .last = 5 * EVREC_SECOND, .count = 1, .get_event = get_event, .source = &event };
	struct write_draft next = draft;
	struct buf packed = { 0 }, text = { 0 };
	void *item, *follow_up, *again;

	(void)state;
	evrec_fields_init(&event);
	event.name = EVREC_STR("web.1");
	event.ns = EVREC_STR("shop");
	event.note = EVREC_STR("a note");
	event.labels = (evrec_map){ labels, 2 };
	event.count = 1;
	event.first = event.last = 5 * EVREC_SECOND;
	other = event;
	other.note = EVREC_STR("a later note");
	next.source = &other;
	item = write_new(&draft);
	follow_up = write_new(&next);
	write_ops.set_name(item, "web.2");
	write_codec.get_changes(item, follow_up, &changes);
	assert_int_equal(changes.count, 1);
	assert_true(write_codec.pack(item, follow_up, &packed));
	again = write_codec.unpack(buf_str(&packed));
	write_codec.set_changes(again, &later);
	assert_true(write_codec.serialize(again, &text));
	for (const char *const *word = (const char *const[]){ "\"web.2\"", "\"a later note\"", "\"app\":\"web\"",
	                                                      "\"count\":9", "1970-01-01T00:00:07Z", NULL };
	     *word != NULL; word++) {
		assert_non_null(strstr(buf_cstr(&text), *word));
	}
	for (size_t len = 0; len < packed.len; len++) {
		void *part = write_codec.unpack((evrec_str){ packed.data, len });

		assert_null(part);
	}
	write_codec.free(again);
	write_free(follow_up);
	write_free(item);
	buf_free(&packed);
	buf_free(&text);
}

static const char *folder;

static void scenario(void)
{
	char path[256], pending[264];
	struct outbox *ob = fake_write_outbox(MANY);
	struct journal *journal;
	struct spool *spool;
	evrec_error err = { 0 };
	unsigned damaged;
	bool noted, imported;

	snprintf(path, sizeof(path), "%s", spool_file_make_folder(folder));
	snprintf(pending, sizeof(pending), "%s-pending", path);
	spool = spool_file_open(path);
	alloc_failure_arm();
	journal = journal_new(pending, 1 << 20, &fake_write_codec, &err);
	alloc_failure_check_error(journal != NULL, &err);
	if (journal != NULL) {
		outbox_set_journal(ob, journal_of_outbox(journal));
		noted = fake_write_submit(ob, 1, 1);
		/* Without memory a write has no note until it changes. */
		alloc_failure_ignore();
		outbox_set_journal(ob, NULL);
		journal_free(journal, false);
		imported = journal_import(pending, spool, &fake_write_codec, NULL, &damaged, &err);
		alloc_failure_check_error(imported || !noted, &err);
	}
	alloc_failure_disarm();
	spool_remove(spool);
	spool_free(spool);
	outbox_free(ob);
}

static void test_every_allocation_may_fail(void **state)
{
	folder = tmpdir_path(*state, "spool");
	alloc_failure_run(scenario, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_pending_writes_are_found),
		TMPDIR_TEST(test_what_was_dropped_is_not_found),
		TMPDIR_TEST(test_damaged_notes_are_left_out_and_counted),
		TMPDIR_TEST(test_random_bytes_do_no_harm),
		TMPDIR_TEST(test_a_full_journal_takes_no_more),
		TMPDIR_TEST(test_it_grows),
		TMPDIR_TEST(test_a_full_disk_gives_no_journal),
		TMPDIR_TEST(test_another_version_stays),
		TMPDIR_TEST(test_an_import_that_fails_brings_nothing),
		cmocka_unit_test(test_an_event_is_the_same_again),
		TMPDIR_TEST(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
