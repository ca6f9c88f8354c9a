#define _GNU_SOURCE /* chroot */

/* The token of a pod is renewed, while the process is in a chroot. */
#include "tmpdir.h"

#include "http/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Writes the token into the new folder `version`, and lets the link ..data name it, as Kubernetes does. */
static bool publish(int volume, const char *version, const char *token)
{
	char name[64];
	int fd;
	bool ok;

	(void)snprintf(name, sizeof(name), "%s/token", version);
	if (mkdirat(volume, version, 0700) != 0 || (fd = openat(volume, name, O_WRONLY | O_CREAT, 0600)) < 0) {
		return false;
	}
	ok = write(fd, token, strlen(token)) == (ssize_t)strlen(token);
	(void)close(fd);
	return ok && symlinkat(version, volume, "..data_tmp") == 0 &&
	       renameat(volume, "..data_tmp", volume, "..data") == 0;
}

/* Opens the folder of the test's volume, with a first token. */
static int make_volume(void **state)
{
	int volume = open(tmpdir_path(*state, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(volume >= 0);
	assert_true(publish(volume, "v1", "first"));
	assert_int_equal(symlinkat("..data/token", volume, "token"), 0);
	return volume;
}

static void open_credentials(struct credentials *c, const char *path)
{
	const struct credentials_options options = { .file = str_from(path) };
	int folder = token_folder_open(path);

	assert_true(folder >= 0);
	assert_int_equal(fcntl(folder, F_GETFD), FD_CLOEXEC);
	assert_true(credentials_init(c, &options));
	credentials_keep_folder(c, folder);
	assert_int_equal(fcntl(c->folder, F_GETFD), FD_CLOEXEC);
	(void)close(folder);
}

static bool has(struct credentials *c, int64_t now, const char *token)
{
	evrec_error err;

	return credentials_refresh(c, now, &err) == 0 && strcmp(c->token, token) == 0;
}

/* In a child, as no process leaves a chroot. Returns the number of the step that failed, or 0. */
static int read_in_chroot(struct credentials *c, int volume, const char *root)
{
	if (!has(c, 0, "first")) {
		return 1;
	}
	if (chroot(root) != 0 || chdir("/") != 0) {
		return 2;
	}
	if (!publish(volume, "v2", "second") || !has(c, 2 * EVREC_SECOND, "second")) {
		return 3;
	}
	c->reload = true;
	if (!publish(volume, "v3", "third") || !has(c, 2 * EVREC_SECOND, "third")) {
		return 4;
	}
	/* Without a file the token stays in use. */
	return unlinkat(volume, "..data", 0) == 0 && has(c, 4 * EVREC_SECOND, "third") ? 0 : 5;
}

static void test_token_is_renewed_in_a_chroot(void **state)
{
	struct credentials c;
	int volume, status;
	pid_t child;

	if (geteuid() != 0) {
		print_message("skipped: chroot needs root\n");
		skip();
	}
	volume = make_volume(state);
	assert_int_equal(mkdirat(volume, "root", 0700), 0);
	open_credentials(&c, tmpdir_path(*state, "token"));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		_exit(read_in_chroot(&c, volume, tmpdir_path(*state, "root")));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	credentials_free(&c);
	(void)close(volume);
}

/* The folder that the path names now wins over the folder that it named at first. */
static void test_path_wins_over_kept_folder(void **state)
{
	int volume = make_volume(state);
	struct credentials c;

	assert_int_equal(symlinkat("v1", volume, "current"), 0);
	open_credentials(&c, tmpdir_path(*state, "current/token"));
	assert_true(has(&c, 0, "first"));
	assert_true(publish(volume, "v2", "second"));
	assert_int_equal(unlinkat(volume, "current", 0), 0);
	assert_true(has(&c, 2 * EVREC_SECOND, "first"));
	assert_int_equal(symlinkat("v2", volume, "current"), 0);
	assert_true(has(&c, 4 * EVREC_SECOND, "second"));
	credentials_free(&c);
	(void)close(volume);
}

static void test_folder_of_a_bare_name(void **state)
{
	int folder = token_folder_open("token");
	struct stat here, opened;

	(void)state;
	assert_int_equal(stat(".", &here), 0);
	assert_int_equal(fstat(folder, &opened), 0);
	assert_int_equal(here.st_ino, opened.st_ino);
	(void)close(folder);
	assert_int_equal(token_folder_open("missing/token"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_token_is_renewed_in_a_chroot),
		TMPDIR_TEST(test_path_wins_over_kept_folder),
		cmocka_unit_test(test_folder_of_a_bare_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
