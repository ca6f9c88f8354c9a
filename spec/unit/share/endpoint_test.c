/* The socket by which processes find their owner: one of them has it, and only as long as it lives. */
#define _GNU_SOURCE

#include "tmpdir.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "share/endpoint.h"

/* A name that no other test of this machine has. */
static evrec_str unique(void)
{
	static char name[64];
	static unsigned number;

	(void)snprintf(name, sizeof(name), "@evrec-test-%ld-%u", (long)getpid(), number++);
	return str_from(name);
}

static struct endpoint *make(evrec_str name)
{
	struct endpoint *e = malloc(sizeof(*e));
	evrec_error err = { 0 };

	assert_non_null(e);
	assert_int_equal(endpoint_init(e, name, &err), 0);
	return e;
}

static void end(struct endpoint *e)
{
	endpoint_close(e);
	free(e);
}

/* A message goes there and back. */
static void check_talks(const struct endpoint *server, const struct endpoint *client)
{
	char data[64];
	evrec_error err = { 0 };
	struct endpoint_copied copied_near, copied_far, copied;
	struct endpoint_peer peer;
	int near, far, fd;

	assert_int_equal(endpoint_connect(client, &copied_near, &near, &err), ENDPOINT_OK);
	assert_true(endpoint_accept(server, &copied, &fd, &peer, &err));
	endpoint_copied_move(&copied, &fd, &copied_far, &far);
	assert_int_equal(fd, -1);
	assert_int_equal(endpoint_receive(far, data, sizeof(data)), 0);
	assert_int_equal(endpoint_send(near, "hello", 5), 1);
	assert_int_equal(endpoint_send(near, "again", 5), 1);
	assert_int_equal(endpoint_receive(far, data, sizeof(data)), 5);
	assert_memory_equal(data, "hello", 5);
	assert_int_equal(endpoint_receive(far, data, 4), -1);
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.user, geteuid());
	assert_false(endpoint_accept(server, &copied, &fd, &peer, &err));
	assert_int_equal(err.code, 0);
	assert_true((fcntl(near, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(far, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(near, F_GETFL) & O_NONBLOCK) != 0 && (fcntl(far, F_GETFL) & O_NONBLOCK) != 0);
	endpoint_copied_end(&copied_near, &near);
	assert_int_equal(endpoint_receive(far, data, sizeof(data)), -1);
	assert_int_equal(endpoint_send(far, "x", 1), -1);
	endpoint_copied_end(&copied_far, &far);
}

static void check_one_owner(evrec_str name)
{
	struct endpoint *first = make(name), *second = make(name);
	struct endpoint_copied copied;
	evrec_error err = { 0 };
	int fd;

	assert_int_equal(endpoint_connect(second, &copied, &fd, &err), ENDPOINT_NOBODY);
	assert_int_equal(endpoint_bind(first, &err), ENDPOINT_OK);
	assert_int_equal(endpoint_bind(second, &err), ENDPOINT_IN_USE);
	check_talks(first, second);
	endpoint_close(first);
	assert_int_equal(endpoint_connect(second, &copied, &fd, &err), ENDPOINT_NOBODY);
	assert_int_equal(endpoint_bind(second, &err), ENDPOINT_OK);
	check_talks(second, first);
	end(first);
	end(second);
}

static void test_abstract_name_has_one_owner(void **state)
{
	(void)state;
	check_one_owner(unique());
}

static void test_path_has_one_owner(void **state)
{
	const char *path = tmpdir_path(*state, "socket");
	struct endpoint *e;
	evrec_error err = { 0 };
	struct stat st;

	check_one_owner(str_from(path));
	assert_int_not_equal(lstat(path, &st), 0);
	e = make(str_from(path));
	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_OK);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	end(e);
}

/* Binds in a child, which says so and waits to be killed; if `forks`, with a child of its own that lives on. */
static pid_t bind_in_child(evrec_str name, bool forks, int lives[2])
{
	int ready[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(lives), 0);
	child = fork();
	if (child == 0) {
		struct endpoint *e = make(name);
		bool ok = endpoint_bind(e, NULL) == ENDPOINT_OK;

		(void)close(lives[1]);
		if (!forks || fork() == 0) {
			(void)!write(ready[1], ok ? "y" : "n", 1);
			(void)close(ready[1]);
		}
		(void)!read(lives[0], &byte, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	(void)close(ready[0]);
	(void)close(lives[0]);
	return child;
}

static void check_killed(evrec_str name, bool forks)
{
	struct endpoint *e = make(name);
	evrec_error err = { 0 };
	int lives[2];
	pid_t child = bind_in_child(name, forks, lives);

	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_IN_USE);
	(void)kill(child, SIGKILL);
	(void)unit_wait(child);
	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_OK);
	check_talks(e, e);
	(void)close(lives[1]);
	end(e);
}

static void test_killed_owner_has_it_no_more(void **state)
{
	check_killed(unique(), false);
	check_killed(str_from(tmpdir_path(*state, "socket")), false);
}

/* A process that the owner has forked without exec does not keep the name. */
static void test_child_of_a_killed_owner_does_not_keep_it(void **state)
{
	check_killed(unique(), true);
	check_killed(str_from(tmpdir_path(*state, "socket")), true);
}

static void check_invalid(evrec_str name, const char *part)
{
	struct endpoint e;
	evrec_error err = { 0 };

	assert_int_equal(endpoint_init(&e, name, &err), EVREC_EINVALID);
	unit_check_contains(err.message, "share: ");
	unit_check_contains(err.message, part);
}

static void test_names_are_checked(void **state)
{
	char longest[110];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[0] = '@';
	check_invalid(EVREC_STR("@"), "neither");
	check_invalid(EVREC_STR("relative/path"), "neither");
	check_invalid(EVREC_STR("@a\0b"), "NUL");
	check_invalid((evrec_str){ longest, 108 }, "longer than 107");
	longest[107] = '\0';
	end(make(str_from(longest)));
}

static void check_not_bound(const char *path, const char *part)
{
	struct endpoint *e = make(str_from(path));
	evrec_error err = { 0 };

	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_FAILED);
	/* Whoever tells it says that it is about a share. */
	assert_int_equal(strncmp(err.message, path, strlen(path)), 0);
	unit_check_contains(err.message, part);
	end(e);
}

static void test_folder_that_others_may_enter_is_refused(void **state)
{
	struct endpoint *e = make(str_from(tmpdir_path(*state, "socket")));
	struct endpoint_copied copied;
	char folder[256];
	evrec_error err = { 0 };
	int fd;

	(void)snprintf(folder, sizeof(folder), "%s", tmpdir_path(*state, ""));
	assert_int_equal(chmod(folder, 0711), 0);
	check_not_bound(tmpdir_path(*state, "socket"), "0700");
	assert_int_equal(endpoint_connect(e, &copied, &fd, &err), ENDPOINT_FAILED);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(symlink(".", tmpdir_path(*state, "link")), 0);
	check_not_bound(tmpdir_path(*state, "link/socket"), "its folder is a symbolic link");
	(void)unlink(tmpdir_path(*state, "link"));
	check_not_bound("/no/such/folder/socket", "its folder");
	end(e);
}

static void test_file_in_place_of_the_socket_is_left_alone(void **state)
{
	const char *path = tmpdir_path(*state, "socket");
	struct stat st;

	tmpdir_write_file(path, "mine");
	check_not_bound(path, "is no socket");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 4);
}

/* Needs root, to be another user for a moment. */
static void test_process_of_another_user_is_refused(void **state)
{
	evrec_str name = unique();
	struct endpoint *e = make(name);
	const unsigned other = 65534;
	struct endpoint_copied copied, copied_far;
	struct endpoint_peer peer;
	evrec_error err = { 0 };
	char words[64];
	int fd, far;

	(void)state;
	if (geteuid() != 0) {
		end(e);
		skip();
	}
	assert_int_equal(seteuid(other), 0);
	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_OK);
	assert_int_equal(seteuid(0), 0);
	/* The server is another user's. */
	assert_int_equal(endpoint_connect(e, &copied, &fd, &err), ENDPOINT_REFUSED);
	(void)snprintf(words, sizeof(words), "the process %ld at the other end of %s is of user 65534", (long)getpid(),
	               name.data);
	unit_check_contains(err.message, words);
	/* Unless that is listed. */
	e->users = &other;
	e->users_len = 1;
	assert_int_equal(endpoint_connect(e, &copied, &fd, &err), ENDPOINT_OK);
	endpoint_copied_end(&copied, &fd);
	e->users_len = 0;
	endpoint_close(e);
	assert_int_equal(endpoint_bind(e, &err), ENDPOINT_OK);
	assert_int_equal(seteuid(other), 0);
	assert_int_equal(endpoint_connect(e, &copied, &fd, &err), ENDPOINT_OK);
	assert_int_equal(seteuid(0), 0);
	assert_true(endpoint_accept(e, &copied_far, &far, &peer, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, words);
	assert_int_equal(peer.user, other);
	endpoint_copied_end(&copied_far, &far);
	endpoint_copied_end(&copied, &fd);
	assert_int_equal(seteuid(other), 0);
	assert_int_equal(endpoint_connect(e, &copied, &fd, &err), ENDPOINT_OK);
	assert_int_equal(seteuid(0), 0);
	e->users_len = 1;
	assert_true(endpoint_accept(e, &copied_far, &far, &peer, &err));
	assert_int_equal(err.code, 0);
	endpoint_copied_end(&copied_far, &far);
	endpoint_copied_end(&copied, &fd);
	end(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abstract_name_has_one_owner),
		TMPDIR_TEST(test_path_has_one_owner),
		TMPDIR_TEST(test_killed_owner_has_it_no_more),
		TMPDIR_TEST(test_child_of_a_killed_owner_does_not_keep_it),
		cmocka_unit_test(test_names_are_checked),
		TMPDIR_TEST(test_folder_that_others_may_enter_is_refused),
		TMPDIR_TEST(test_file_in_place_of_the_socket_is_left_alone),
		cmocka_unit_test(test_process_of_another_user_is_refused),
	};

	return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
