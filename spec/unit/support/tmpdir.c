#include "tmpdir.h"

#include <dirent.h>
#include <fcntl.h>

#define PATHS 4

struct tmpdir {
	char path[512];
	char *paths[PATHS]; /* given out by tmpdir_path, in turn */
	unsigned next;
};

int tmpdir_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct tmpdir *dir = calloc(1, sizeof(*dir));

	(void)snprintf(dir->path, sizeof(dir->path), "%s/evrec-test.XXXXXX", tmp == NULL ? "/tmp" : tmp);
	*state = dir;
	return mkdtemp(dir->path) == NULL;
}

const char *tmpdir_path(void *state, const char *name)
{
	struct tmpdir *dir = state;
	char **path = &dir->paths[dir->next++ % PATHS];
	size_t size = strlen(dir->path) + strlen(name) + 2;

	free(*path);
	*path = malloc(size);
	(void)snprintf(*path, size, "%s/%s", dir->path, name);
	return *path;
}

void tmpdir_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

long tmpdir_last_number(const char *path, const char *words)
{
	char line[4096] = "";
	const char *at;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
	}
	(void)fclose(file);
	at = strstr(line, words);
	assert_non_null(at);
	return strtol(at + strlen(words), NULL, 10);
}

/* A file, or a folder with files. */
static void remove_file(const char *path)
{
	DIR *folder = unlink(path) == 0 ? NULL : opendir(path);
	const struct dirent *file;

	while (folder != NULL && (file = readdir(folder)) != NULL) {
		(void)unlinkat(dirfd(folder), file->d_name, 0);
	}
	if (folder != NULL) {
		(void)closedir(folder);
		(void)rmdir(path);
	}
}

/* Removes the files of a directory if `remove` is true. Returns how many there were. */
static size_t visit_files(struct tmpdir *dir, bool remove)
{
	DIR *files = opendir(dir->path);
	const struct dirent *file;
	size_t n = 0;

	while (files != NULL && (file = readdir(files)) != NULL) {
		if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0) {
			n++;
			if (remove) {
				remove_file(tmpdir_path(dir, file->d_name));
			}
		}
	}
	if (files != NULL) {
		(void)closedir(files);
	}
	return n;
}

bool tmpdir_is_empty(void *state)
{
	return visit_files(state, false) == 0;
}

int tmpdir_teardown(void **state)
{
	struct tmpdir *dir = *state;
	int failed;

	(void)visit_files(dir, true);
	failed = rmdir(dir->path) != 0;
	for (size_t i = 0; i < PATHS; i++) {
		free(dir->paths[i]);
	}
	free(dir);
	return failed;
}
