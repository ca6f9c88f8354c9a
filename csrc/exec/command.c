#define _GNU_SOURCE /* environ */

#include "exec/command.h"

#include "base/file.h"
#include "exec/exec_info.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define INFO_NAME "KUBERNETES_EXEC_INFO"
#define SHOWN_MAX 120 /* bytes of a command in a message */

static int no_memory(evrec_error *err)
{
	return error_set(err, EVREC_ENOMEM, "exec: no memory");
}

/* ---- checks ---- */

static bool has_nul(evrec_str s)
{
	return s.len != 0 && memchr(s.data, '\0', s.len) != NULL;
}

static int check_strings(const evrec_exec *exec, evrec_error *err)
{
	if (exec->command.len == 0 || has_nul(exec->command)) {
		return error_set(err, EVREC_EINVALID, "exec: command: missing, or a NUL byte in it");
	}
	for (size_t i = 0; i < exec->args_len; i++) {
		if (has_nul(exec->args[i])) {
			return error_set(err, EVREC_EINVALID, "exec: args: a NUL byte in one");
		}
	}
	for (size_t i = 0; i < exec->env.len; i++) {
		const evrec_pair *pair = &exec->env.pairs[i];

		if (pair->key.len == 0 || has_nul(pair->key) || has_nul(pair->value) ||
		    memchr(pair->key.data, '=', pair->key.len) != NULL) {
			return error_set(err, EVREC_EINVALID, "exec: env: no name, or a NUL byte or '=' in one");
		}
	}
	return 0;
}

/* The kernel lets root exceed its limit. */
static bool may_start_processes(void)
{
	struct rlimit limit;

	return geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur != 0;
}

static const char *find_version(evrec_str version)
{
	static const char *const known[] = { "client.authentication.k8s.io/v1",
		                             "client.authentication.k8s.io/v1beta1" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_eq(version, str_from(known[i]))) {
			return known[i];
		}
	}
	return NULL;
}

static int check(const evrec_exec *exec, evrec_error *err)
{
	if (find_version(exec->api_version) == NULL) {
		return error_set(err, EVREC_EINVALID,
		                 "exec: api_version: expected client.authentication.k8s.io/v1 or /v1beta1");
	}
	if (!may_start_processes()) {
		return error_set(err, EVREC_EINVALID, "exec: this process may start no other one (RLIMIT_NPROC is 0)");
	}
	return check_strings(exec, err);
}

/* ---- finding the command ---- */

static bool is_program(const char *path)
{
	struct stat found;

	return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

/*
 * Puts the path of the program `name` into `path`; false: $PATH has none. Relative folders in $PATH are skipped: the
 * command would depend on the current folder.
 */
static bool look_up(evrec_str name, struct buf *path)
{
	/* Read when the sink is made, as the rest of the environment. */
	const char *folder = getenv("PATH"), *end; /* NOLINT(concurrency-mt-unsafe) */

	for (; folder != NULL; folder = *end == '\0' ? NULL : end + 1) {
		end = strchrnul(folder, ':');
		if (*folder != '/') {
			continue;
		}
		path->len = 0;
		buf_put(path, folder, (size_t)(end - folder));
		buf_put_str(path, EVREC_STR("/"));
		buf_put_str(path, name);
		if (is_program(buf_cstr(path))) {
			return true;
		}
	}
	return false;
}

static int find(evrec_str command, struct buf *path, evrec_error *err)
{
	const bool is_name = memchr(command.data, '/', command.len) == NULL;
	const bool found =
		is_name ? look_up(command, path) : file_put_absolute(path, command) && is_program(buf_cstr(path));
	const int shown = command.len < SHOWN_MAX ? (int)command.len : SHOWN_MAX;

	if (path->failed) {
		return no_memory(err);
	}
	return found ? 0
	             : error_set(err, EVREC_EINVALID, "exec: '%.*s' is not %s", shown, command.data,
	                         is_name ? "in a folder of $PATH" : "a program that can be run");
}

/* ---- building ---- */

/* Strings with a NUL behind each one, and their number. */
struct list {
	struct buf text;
	size_t len;
	size_t own_env; /* how many strings come before the variables of evrec_exec */
};

static void list_put(struct list *list, evrec_str s)
{
	buf_put_str(&list->text, s);
	buf_put(&list->text, "", 1);
	list->len++;
}

static void list_put_variable(struct list *list, evrec_str name, evrec_str value)
{
	buf_put_str(&list->text, name);
	buf_put_str(&list->text, EVREC_STR("="));
	list_put(list, value);
}

/* True: one of exec->env from `from` on sets this variable, or evrec does. */
static bool is_set_later(const evrec_exec *exec, size_t from, evrec_str name)
{
	for (size_t i = from; i < exec->env.len; i++) {
		if (str_eq(exec->env.pairs[i].key, name)) {
			return true;
		}
	}
	return str_eq(name, EVREC_STR(INFO_NAME));
}

static void put_environment(struct list *list, const evrec_exec *exec, evrec_str info)
{
	for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
		const evrec_str name = { *variable, strcspn(*variable, "=") };

		if (!is_set_later(exec, 0, name)) {
			list_put(list, str_from(*variable));
		}
	}
	list->own_env = list->len;
	for (size_t i = 0; i < exec->env.len; i++) {
		if (!is_set_later(exec, i + 1, exec->env.pairs[i].key)) {
			list_put_variable(list, exec->env.pairs[i].key, exec->env.pairs[i].value);
		}
	}
	list_put_variable(list, EVREC_STR(INFO_NAME), info);
}

/* Points to `n` strings from `text` on, and NULL; returns what follows the strings. */
static char *point(char **pointers, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++) {
		pointers[i] = text;
		text += strlen(text) + 1;
	}
	pointers[n] = NULL;
	return text;
}

/* The strings are: path, command, arguments, environment. Takes the text from `list`. */
static struct exec_command *build(const evrec_exec *exec, struct list *list)
{
	const size_t args = exec->args_len + 1;
	struct exec_command *command = mem_zalloc(sizeof(*command));
	char **pointers = mem_alloc((list->len + 2) * sizeof(char *)), **envp = pointers + args + 1;
	char *text = list->text.data;

	if (command == NULL || pointers == NULL || list->text.failed) {
		mem_free(command);
		mem_free(pointers);
		return NULL;
	}
	atomic_init(&command->refs, 1);
	command->strings = text;
	command->pointers = pointers;
	command->api_version = find_version(exec->api_version);
	list->text = (struct buf){ 0 };
	(void)point(envp, list->len - 1 - args, point(pointers, args, text + strlen(text) + 1));
	command->process = (struct process_command){ text, pointers, envp };
	command->own_env = envp + (list->own_env - 1 - args);
	command->name = pointers[0];
	return command;
}

static int put_strings(struct list *list, const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err)
{
	struct buf info = { 0 };
	int code = find(exec->command, &list->text, err);

	if (code == 0) {
		code = exec_info_put(&info, exec, cluster, err);
	}
	if (code == 0) {
		list_put(list, (evrec_str){ NULL, 0 }); /* ends the path */
		list_put(list, exec->command);
		for (size_t i = 0; i < exec->args_len; i++) {
			list_put(list, exec->args[i]);
		}
		put_environment(list, exec, buf_str(&info));
	}
	buf_free(&info);
	return code;
}

struct exec_command *exec_command_new(const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err)
{
	struct exec_command *command = NULL;
	struct list list = { 0 };

	if (check(exec, err) == 0 && put_strings(&list, exec, cluster, err) == 0) {
		command = build(exec, &list);
		if (command == NULL) {
			no_memory(err);
		}
	}
	buf_free(&list.text);
	return command;
}

struct exec_command *exec_command_retain(struct exec_command *command)
{
	atomic_fetch_add_explicit(&command->refs, 1, memory_order_relaxed);
	return command;
}

void exec_command_release(struct exec_command *command)
{
	if (command != NULL && atomic_fetch_sub(&command->refs, 1) == 1) {
		mem_free(command->strings);
		mem_free(command->pointers);
		mem_free(command);
	}
}
