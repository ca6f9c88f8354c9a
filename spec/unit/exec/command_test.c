/* Commands of credential plugins: how they are found, what they are told, and which are refused. */
#define _GNU_SOURCE

#include "tmpdir.h"

#include "exec/command.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define V1 EVREC_STR("client.authentication.k8s.io/v1")

static struct exec_command *make(const evrec_exec *exec)
{
	const struct exec_cluster cluster = { EVREC_STR("https://s"), EVREC_STR("pem\n"), true };
	evrec_error err = { 0 };
	struct exec_command *command = exec_command_new(exec, &cluster, &err);

	assert_string_equal(err.message, "");
	assert_non_null(command);
	return command;
}

static void check_refused(const evrec_exec *exec, const char *message)
{
	const struct exec_cluster cluster = { EVREC_STR("https://s"), { NULL, 0 }, false };
	evrec_error err = { 0 };

	assert_null(exec_command_new(exec, &cluster, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, message);
}

/* A variable's value, and how often it is set; NULL: never. */
static const char *value_of(const struct exec_command *command, const char *name, unsigned *times)
{
	const char *value = NULL;
	size_t len = strlen(name);

	*times = 0;
	for (char *const *v = command->process.envp; *v != NULL; v++) {
		if (strncmp(*v, name, len) == 0 && (*v)[len] == '=') {
			value = *v + len + 1;
			++*times;
		}
	}
	return value;
}

static void check_variable(const struct exec_command *command, const char *name, const char *value)
{
	unsigned times;

	assert_string_equal(value_of(command, name, &times), value);
	assert_int_equal(times, 1);
}

static void make_program(void *state, const char *name)
{
	tmpdir_write_file(tmpdir_path(state, name), "#!/bin/sh\n");
	assert_int_equal(chmod(tmpdir_path(state, name), 0700), 0);
}

static void check_found(const evrec_exec *exec, const char *path)
{
	struct exec_command *command = make(exec);

	assert_string_equal(command->process.path, path);
	assert_true(str_eq(exec->command, str_from(command->name)));
	exec_command_release(command);
}

static void test_a_name_is_looked_up_in_absolute_folders_of_the_path(void **state)
{
	const evrec_exec exec = { .command = EVREC_STR("plugin"), .api_version = V1 };
	char *old = strdup(getenv("PATH")), *folder = get_current_dir_name(), path[1024];

	make_program(*state, "plugin");
	assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
	setenv("PATH", ":.:relative:/usr/bin:/bin", 1);
	check_refused(&exec, "exec: 'plugin' is not in a folder of $PATH");
	(void)snprintf(path, sizeof(path), "/nowhere:%s", tmpdir_path(*state, ""));
	setenv("PATH", path, 1);
	(void)snprintf(path, sizeof(path), "%s/plugin", tmpdir_path(*state, ""));
	check_found(&exec, path);
	assert_int_equal(chmod(path, 0600), 0);
	check_refused(&exec, "exec: 'plugin' is not in");
	unsetenv("PATH");
	check_refused(&exec, "exec: 'plugin' is not in");
	setenv("PATH", old, 1);
	assert_int_equal(chdir(folder), 0);
	free(folder);
	free(old);
}

static void test_a_path_is_made_absolute(void **state)
{
	const evrec_exec exec = { .command = EVREC_STR("./plugin"), .api_version = V1 };
	const evrec_exec nowhere = { .command = EVREC_STR("/nowhere/plugin"), .api_version = V1 };
	const evrec_exec is_folder = { .command = EVREC_STR("/usr"), .api_version = V1 };
	char *folder = get_current_dir_name(), *here, path[1024];

	make_program(*state, "plugin");
	assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
	here = get_current_dir_name();
	(void)snprintf(path, sizeof(path), "%s/./plugin", here);
	check_found(&exec, path);
	check_refused(&nowhere, "exec: '/nowhere/plugin' is not a program that can be run");
	check_refused(&is_folder, "exec: '/usr' is not a program");
	assert_int_equal(chdir(folder), 0);
	free(folder);
	free(here);
}

static void test_arguments_and_environment_are_copied(void **state)
{
	const evrec_str args[] = { EVREC_STR("a b"), { NULL, 0 } };
	const evrec_pair env[] = { { EVREC_STR("EVREC_ONE"), EVREC_STR("1") },
		                   { EVREC_STR("EVREC_TWO"), EVREC_STR("no") },
		                   { EVREC_STR("EVREC_TWO"), EVREC_STR("2=2") },
		                   { EVREC_STR("KUBERNETES_EXEC_INFO"), EVREC_STR("no") } };
	const evrec_exec exec = { EVREC_STR("sh"), args, 2, { env, 4 }, V1, false, { NULL, 0 } };
	struct exec_command *command;

	(void)state;
	setenv("EVREC_ONE", "old", 1);
	setenv("EVREC_THREE", "3", 1);
	command = exec_command_retain(make(&exec));
	exec_command_release(command);
	unsetenv("EVREC_ONE");
	unsetenv("EVREC_THREE");
	assert_string_equal(command->process.argv[0], "sh");
	assert_string_equal(command->process.argv[1], "a b");
	assert_string_equal(command->process.argv[2], "");
	assert_null(command->process.argv[3]);
	check_variable(command, "EVREC_ONE", "1");
	check_variable(command, "EVREC_TWO", "2=2");
	check_variable(command, "EVREC_THREE", "3");
	check_variable(command, "PATH", getenv("PATH"));
	check_variable(command, "KUBERNETES_EXEC_INFO",
	               "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
	               "\"spec\":{\"interactive\":false}}");
	exec_command_release(command);
}

static void test_a_plugin_may_be_told_of_the_cluster(void **state)
{
	evrec_exec exec = { .command = EVREC_STR("sh"),
		            .api_version = EVREC_STR("client.authentication.k8s.io/v1beta1"),
		            .provide_cluster_info = true,
		            .cluster_config = EVREC_STR("{\"a\":1}") };
	struct exec_command *command = make(&exec);

	(void)state;
	check_variable(command, "KUBERNETES_EXEC_INFO",
	               "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
	               "\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://s\","
	               "\"certificate-authority-data\":\"cGVtCg==\",\"insecure-skip-tls-verify\":true,"
	               "\"config\":{\"a\":1}}}}");
	exec_command_release(command);
	exec.cluster_config = EVREC_STR("{");
	check_refused(&exec, "exec: cluster_config: no JSON");
}

static void test_fields_are_checked(void **state)
{
	const evrec_str nul = EVREC_STR("a\0b");
	const evrec_pair nameless = { { NULL, 0 }, EVREC_STR("x") }, equals = { EVREC_STR("A=B"), EVREC_STR("x") };
	evrec_exec exec = { .command = EVREC_STR("sh"),
		            .api_version = EVREC_STR("client.authentication.k8s.io/v1alpha1") };

	(void)state;
	check_refused(&exec, "exec: api_version: ");
	exec.api_version = V1;
	exec.args = &nul;
	exec.args_len = 1;
	check_refused(&exec, "exec: args: ");
	exec.args_len = 0;
	exec.env = (evrec_map){ &nameless, 1 };
	check_refused(&exec, "exec: env: ");
	exec.env = (evrec_map){ &equals, 1 };
	check_refused(&exec, "exec: env: ");
	exec.env.len = 0;
	exec.command = nul;
	check_refused(&exec, "exec: command: ");
	exec.command.len = 0;
	check_refused(&exec, "exec: command: ");
}

static void test_a_process_that_may_start_none_is_refused(void **state)
{
	const evrec_exec exec = { .command = EVREC_STR("sh"), .api_version = V1 };
	const struct exec_cluster cluster = { EVREC_STR("https://s"), { NULL, 0 }, false };
	const struct rlimit none = { 0, 0 };
	evrec_error err = { 0 };
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && seteuid(65534) != 0)) {
			_exit(2);
		}
		_exit(exec_command_new(&exec, &cluster, &err) == NULL && strstr(err.message, "RLIMIT_NPROC") ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
}

static void test_without_memory_it_says_so(void **state)
{
	const evrec_exec exec = { .command = EVREC_STR("sh"), .api_version = V1, .provide_cluster_info = true };
	const struct exec_cluster cluster = { EVREC_STR("https://s"), EVREC_STR("pem"), false };
	struct unit_allocator allocator = { 0 };
	struct exec_command *command = NULL;
	evrec_error err;

	(void)state;
	evrec_set_allocator(unit_realloc, &allocator);
	for (size_t i = 1; command == NULL; i++) {
		allocator = (struct unit_allocator){ 0, i };
		command = exec_command_new(&exec, &cluster, &err);
		assert_true(command != NULL || err.code == EVREC_ENOMEM);
	}
	exec_command_release(command);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_name_is_looked_up_in_absolute_folders_of_the_path),
		TMPDIR_TEST(test_a_path_is_made_absolute),
		cmocka_unit_test(test_arguments_and_environment_are_copied),
		cmocka_unit_test(test_a_plugin_may_be_told_of_the_cluster),
		cmocka_unit_test(test_fields_are_checked),
		cmocka_unit_test(test_a_process_that_may_start_none_is_refused),
		cmocka_unit_test(test_without_memory_it_says_so),
	};

	return cmocka_run_group_tests_name("exec: command", tests, NULL, NULL);
}
