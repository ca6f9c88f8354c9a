/*
 * exec_info.h - the value of KUBERNETES_EXEC_INFO, by which a credential plugin learns what it is asked for. Any thread.
 */
#ifndef EVREC_EXEC_INFO_H
#define EVREC_EXEC_INFO_H

#include "exec/command.h"

#pragma GCC visibility push(hidden)

/*
 * Appends an ExecCredential in JSON: its spec has the cluster if exec->provide_cluster_info is set. `exec` is checked
 * but for cluster_config. EVREC_EINVALID: that is no JSON; EVREC_ENOMEM.
 */
int exec_info_put(struct buf *out, const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err);

#pragma GCC visibility pop

#endif
