/* spool_fixture.h - sender fixtures with a spool: how they begin and end, and the messages about their spool. */
#ifndef EVREC_UNIT_SPOOL_FIXTURE_H
#define EVREC_UNIT_SPOOL_FIXTURE_H

#include "sender_fixture.h"
#include "tmpdir.h"

/* A test with a temporary directory, at the end of which no fake write is left. */
#define SPOOL_TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, spool_fixture_teardown)

int spool_fixture_teardown(void **state);

/*
 * A process is killed that had sent nothing: the write of this id is in its journal, and one occurrence of it is sure. Returns
 * the journal's path, valid until the next call.
 */
const char *spool_fixture_die(const char *folder, unsigned id);

/* A fixture with the real clock and a spool in the file `path`. */
void spool_fixture_open(struct sender_fixture *f, bool threadless, const char *path);

/* Joins the sender with 50 ms to write, and releases it as spool_fixture_release does. */
void spool_fixture_end(struct sender_fixture *f, uint64_t spooled, uint64_t closed);

/* Releases a joined sender. It has spooled and, for EVREC_CAUSE_CLOSED, dropped so many events; none is pending. */
void spool_fixture_release(struct sender_fixture *f, uint64_t spooled, uint64_t closed);

/* Waits until all events are written: the thread's work, or that of steps. None is dropped. */
void spool_fixture_drain(struct sender_fixture *f);

/* The number of rows in the file: writes and so removes them all. */
unsigned spool_fixture_count_rows(const char *path);

/* There is no message, or one about the spool that contains `words`: earlier messages are skipped. */
void spool_fixture_check_silent(struct sender_fixture *f);
void spool_fixture_check_message(struct sender_fixture *f, const char *words);

#endif
