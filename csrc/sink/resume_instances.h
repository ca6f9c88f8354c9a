/*
 * resume_instances.h - the option resume_instances: reporting instances whose events a sink continues. A `*` at the end
 * of an instance stands for any text. Pure. Any thread.
 */
#ifndef EVREC_RESUME_INSTANCES_H
#define EVREC_RESUME_INSTANCES_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Checks the options resume and resume_instances: 0, or EVREC_EINVALID and a message that names the option. */
int resume_check_options(const evrec_kubernetes_options *options, evrec_error *err);
/* A copy of `n` strings, in one block, freed with mem_free. NULL: no memory. */
evrec_str *resume_instances_copy(const evrec_str *instances, size_t n);
bool resume_instances_match(const evrec_str *instances, size_t n, evrec_str instance);

#pragma GCC visibility pop

#endif
