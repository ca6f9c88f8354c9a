/* exec_info.h - the value of KUBERNETES_EXEC_INFO, the input of a credential plugin. Any thread. */
#ifndef EVREC_EXEC_INFO_H
#define EVREC_EXEC_INFO_H

#include "exec/command.h"

#pragma GCC visibility push(hidden)

/*
 * Appends an ExecCredential in JSON: its spec has the cluster if exec->provide_cluster_info is set. All of `exec` but
 * cluster_config was checked. EVREC_EINVALID: cluster_config is no JSON; EVREC_ENOMEM.
 */
int exec_info_put(struct buf *out, const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err);

#pragma GCC visibility pop

#endif
