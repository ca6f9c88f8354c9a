/* tmpdir.h - a temporary directory for each test, which is removed afterwards with all files in it. */
#ifndef EVREC_UNIT_TMPDIR_H
#define EVREC_UNIT_TMPDIR_H

#include "unit.h"

#include <signal.h>
#include <unistd.h>

/* cmocka's setup and teardown: *state is a struct tmpdir that they own. So are folders in it, with their files. */
int tmpdir_setup(void **state);
int tmpdir_teardown(void **state);

#define TMPDIR_TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, tmpdir_teardown)

/*
 * The path of the file `name` in the directory; `state` is *state of the test. The string belongs to the directory and
 * stays valid for three more calls.
 */
const char *tmpdir_path(void *state, const char *name);

/* Whether the directory has no files. */
bool tmpdir_is_empty(void *state);

/* Writes `text` to the file `path`, which only its owner may read; another content is gone. */
void tmpdir_write_file(const char *path, const char *text);

/* The number behind `words` in the last line of the file `path`. Fails the test if the line does not contain `words`. */
long tmpdir_last_number(const char *path, const char *words);

#endif
