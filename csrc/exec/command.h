/*
 * command.h - a credential plugin as a kubeconfig configures it: the command, its arguments and environment. Checked,
 * found and copied once, when a sink is made. Immutable and counted; any thread.
 */
#ifndef EVREC_EXEC_COMMAND_H
#define EVREC_EXEC_COMMAND_H

#include "exec/process.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* The cluster's data for the plugin, if the kubeconfig has provideClusterInfo. */
struct exec_cluster {
	evrec_str server, ca; /* PEM; unset: the system's authorities */
	bool insecure_skip_tls_verify;
};

struct exec_command {
	atomic_uint refs;
	struct process_command process;
	const char *name; /* for people: the command as it was configured */
	const char *api_version;
	char *const *own_env;      /* the variables of evrec_exec, then KUBERNETES_EXEC_INFO, then NULL */
	char *strings, **pointers; /* the memory to which the other fields point */
};

/*
 * Copies `exec` and the environment of this process, which no other thread may change meanwhile. NULL: EVREC_EINVALID,
 * with a message that begins with "exec: " (a field is wrong, there is no such command, or this process may start no
 * other one), or EVREC_ENOMEM.
 */
struct exec_command *exec_command_new(const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err);
struct exec_command *exec_command_retain(struct exec_command *command);
void exec_command_release(struct exec_command *command); /* NULL is fine */

#pragma GCC visibility pop

#endif
