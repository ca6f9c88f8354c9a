/* A journal without memory, or without room: it is whole afterwards, and notes the next write that has both. */
#define _GNU_SOURCE

#include "fake_write.h"
#include "spool_file.h"

#include "spool/journal_import.h"
#include "spool/journal_inner.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool no_mapping, no_memory;

/* Takes the place of libc's. */
void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
	if (no_mapping) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, offset);
}

/* As many bytes as the write's size, at least. */
static bool pack_or_fail(const void *item, const void *follow_up, struct buf *out)
{
	if (no_memory || !fake_write_codec.pack(item, follow_up, out)) {
		return false;
	}
	for (unsigned i = 0; i < ((const struct fake_write *)item)->size; i++) {
		buf_put(out, "", 1);
	}
	return !out->failed;
}

static struct journal *new_journal(const char *path, size_t max_bytes)
{
	struct spool_codec codec = fake_write_codec;
	struct journal *journal;
	evrec_error err;

	codec.pack = pack_or_fail;
	journal = journal_new(path, max_bytes, &codec, &err);
	assert_non_null(journal);
	return journal;
}

static void test_no_address_space(void **state)
{
	const char *path = tmpdir_path(*state, "x-pending");
	struct outbox *ob = fake_write_outbox(10000);
	struct journal *journal;
	evrec_error err;

	no_mapping = true;
	assert_null(journal_new(path, 1 << 20, &fake_write_codec, &err));
	assert_non_null(strstr(err.message, "Cannot allocate memory"));
	assert_int_not_equal(access(path, F_OK), 0);
	no_mapping = false;
	journal = new_journal(path, 16 << 20);
	outbox_set_journal(ob, journal_of_outbox(journal));
	for (unsigned i = 1; i <= 3000; i++) {
		assert_true(fake_write_submit(ob, i, 1));
	}
	no_mapping = true;
	for (unsigned tries = 0; tries < 2; tries++) {
		assert_false(journal_enlarge(journal, &err));
		assert_non_null(strstr(err.message, "Cannot allocate memory"));
	}
	no_mapping = false;
	assert_true(journal_enlarge(journal, &err));
	outbox_set_journal(ob, NULL);
	journal_free(journal, true);
	outbox_free(ob);
}

/* Notes a write of this name, of the number `note` (0: a new one). Returns its number. */
static uint32_t note(struct journal *journal, uint32_t note, const char *name, unsigned size)
{
	const struct outbox_row row = { .verb = VERB_CREATE, .count = 1, .last = T0 };
	struct outbox_journal *of_outbox = journal_of_outbox(journal);
	struct fake_write draft = { .count = 1, .size = size };
	void *item;

	(void)snprintf(draft.name, sizeof(draft.name), "%s", name);
	item = fake_write_make(&draft);
	note = of_outbox->note(of_outbox, note, &row, item, NULL, false);
	fake_write_codec.free(item);
	return note;
}

static bool keep_item(void *ctx, const struct spool_row *row)
{
	(void)snprintf(ctx, 64, "%.*s", (int)row->item.len, row->item.data);
	return true;
}

/* A write's text changes, and there is no memory to store it: the next note of it does, though the text is the same again. */
static void test_text_without_memory_is_stored_later(void **state)
{
	char path[256], pending[264], found[64] = "";
	struct journal *journal;
	struct spool *spool;
	evrec_error err;
	unsigned damaged;
	uint32_t number;

	snprintf(path, sizeof(path), "%s", spool_file_make_folder(tmpdir_path(*state, "spool")));
	snprintf(pending, sizeof(pending), "%s-pending", path);
	journal = new_journal(pending, 1 << 20);
	number = note(journal, 0, "old", 0);
	assert_int_not_equal(number, 0);
	no_memory = true;
	assert_int_equal(note(journal, number, "new", 0), number);
	no_memory = false;
	assert_int_equal(note(journal, number, "new", 0), number);
	journal_free(journal, false);
	spool = spool_file_open(path);
	assert_true(journal_import(pending, spool, &fake_write_codec, NULL, &damaged, &err));
	assert_true(spool_read(spool, 0, INT64_MAX, 9, keep_item, found, &err));
	assert_memory_equal(found, "new ", 4);
	spool_remove(spool);
	spool_free(spool);
}

/* A write that the whole journal could not hold leaves it to others. */
static void test_write_larger_than_the_journal(void **state)
{
	struct journal *journal = new_journal(tmpdir_path(*state, "x-pending"), 16 * JOURNAL_BLOCK);

	assert_int_equal(note(journal, 0, "large", 16 * JOURNAL_BLOCK), 0);
	assert_int_not_equal(note(journal, 0, "small", 0), 0);
	journal_free(journal, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_address_space, tmpdir_setup, tmpdir_teardown),
		cmocka_unit_test_setup_teardown(test_text_without_memory_is_stored_later, tmpdir_setup,
		                                tmpdir_teardown),
		cmocka_unit_test_setup_teardown(test_write_larger_than_the_journal, tmpdir_setup, tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
