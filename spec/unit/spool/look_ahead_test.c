/* An owner takes over the counts in the journals of killed processes, and may be killed at any moment of that. */
#include "spool_file.h"
#include "spool_fixture.h"

#include "spool/journal.h"
#include "spool/spooler.h"

#include <unistd.h>

#define FILES 3

static struct {
	char folder[256];
	char pending[FILES][300];
} world;

static void die_all(void **state)
{
	snprintf(world.folder, sizeof(world.folder), "%s", tmpdir_path(*state, "spool"));
	(void)spool_file_make_folder(world.folder);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(world.pending[i], sizeof(world.pending[i]), "%s", spool_fixture_die(world.folder, i + 1));
	}
}

static unsigned count_journals(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FILES; i++) {
		n += access(world.pending[i], F_OK) == 0;
	}
	return n;
}

struct owner {
	struct outbox *ob;
	struct spooler *spooler;
	evrec_clock *clock;
};

static void begin(struct owner *o)
{
	o->clock = evrec_clock_fake(0);
	o->ob = fake_write_outbox(10);
	outbox_expect(o->ob, true);
	outbox_send_rows_first(o->ob);
	o->spooler = spooler_new(str_from(world.folder), SPOOL_AFTER, &fake_write_sure_codec);
}

/* As by SIGKILL. */
static void end(struct owner *o)
{
	spooler_free(o->spooler);
	outbox_free(o->ob);
	evrec_clock_release(o->clock);
}

static unsigned send_all(struct owner *o)
{
	const struct outcome written = { .verdict = VERDICT_WRITTEN };
	struct entry *entry;
	unsigned n = 0;

	/* A file is left once its rows are deleted. */
	for (unsigned i = 0; i < 4 * FILES; i++) {
		spooler_step(o->spooler, o->ob, o->clock, false);
		while ((entry = outbox_take(o->ob, 0)) != NULL) {
			outbox_answer(o->ob, entry, &written, 0);
			n++;
		}
	}
	return n;
}

static void test_all_journals_are_found(void **state)
{
	struct owner o;

	die_all(state);
	begin(&o);
	spooler_look_ahead(o.spooler, o.ob, false);
	assert_int_equal(fake_write_count_brought(o.ob), FILES);
	spooler_end_look_ahead(o.spooler, o.ob);
	assert_int_equal(count_journals(), 0);
	assert_int_equal(send_all(&o), FILES);
	end(&o);
	assert_int_equal(spool_file_count(world.folder), 0);
}

/* If an owner is killed before its state has the counts, the next owner finds them again, and writes nothing twice. */
static void test_journals_stay_until_their_counts_are_taken_over(void **state)
{
	struct owner o;

	die_all(state);
	for (unsigned life = 0; life < 3; life++) {
		begin(&o);
		spooler_look_ahead(o.spooler, o.ob, false);
		assert_int_equal(fake_write_count_brought(o.ob), FILES);
		assert_int_equal(count_journals(), FILES);
		end(&o);
	}
	begin(&o);
	spooler_look_ahead(o.spooler, o.ob, false);
	spooler_end_look_ahead(o.spooler, o.ob);
	assert_int_equal(send_all(&o), FILES);
	end(&o);
}

/* If a row was sent before, the next owner would find it again in the journal after its answer. */
static void test_no_row_is_sent_before_its_journal_is_removed(void **state)
{
	struct owner o, other;

	die_all(state);
	begin(&o);
	spooler_look_ahead(o.spooler, o.ob, false);
	assert_int_equal(send_all(&o), 0);
	begin(&other);
	assert_int_equal(send_all(&other), 0);
	end(&other);
	evrec_clock_set(o.clock, 3 * EVREC_SECOND);
	spooler_end_look_ahead(o.spooler, o.ob);
	assert_int_equal(send_all(&o), FILES);
	end(&o);
}

/* The note's text is in the first block behind the head of the file, after the number of its next block. */
static void damage(unsigned i)
{
	FILE *file = fopen(world.pending[i], "r+b");

	assert_non_null(file);
	assert_int_equal(fseek(file, JOURNAL_BLOCK + 4, SEEK_SET), 0);
	assert_int_equal(fputc('?', file), '?');
	assert_int_equal(fclose(file), 0);
}

/* The message comes whichever of the files is damaged. */
static void test_damaged_journal_is_told(void **state)
{
	struct outbox_message message;
	struct owner o;

	for (unsigned i = 0; i < FILES; i++) {
		die_all(state);
		damage(i);
		begin(&o);
		spooler_look_ahead(o.spooler, o.ob, false);
		assert_int_equal(fake_write_count_brought(o.ob), FILES - 1);
		assert_true(outbox_next_message(o.ob, &message));
		unit_check_contains(message.message, "a journal in the spool was damaged");
		spooler_end_look_ahead(o.spooler, o.ob);
		assert_int_equal(send_all(&o), FILES - 1);
		end(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_all_journals_are_found),
		TMPDIR_TEST(test_journals_stay_until_their_counts_are_taken_over),
		TMPDIR_TEST(test_no_row_is_sent_before_its_journal_is_removed),
		TMPDIR_TEST(test_damaged_journal_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
