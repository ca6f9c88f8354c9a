/*
 * folder.h - a folder for each test, gone with all that is in it afterwards.
 */
#ifndef EVREC_FOLDER_H
#define EVREC_FOLDER_H

#include "unit.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

static inline int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *path = malloc(512);

	(void)snprintf(path, 512, "%s/evrec-test.XXXXXX", tmp == NULL ? "/tmp" : tmp);
	*state = path;
	return mkdtemp(path) == NULL;
}

/* The path of a file in there; it holds for three more calls. */
static inline const char *in_folder(const void *state, const char *name)
{
	static char paths[4][1024];
	static unsigned next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)state, name);
	return path;
}

static inline int remove_folder(void **state)
{
	DIR *folder = opendir(*state);
	const struct dirent *file;

	while (folder != NULL && (file = readdir(folder)) != NULL) {
		(void)unlink(in_folder(*state, file->d_name));
	}
	if (folder != NULL) {
		(void)closedir(folder);
	}
	(void)rmdir(*state);
	free(*state);
	return 0;
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
