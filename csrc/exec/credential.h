/*
 * credential.h - the ExecCredential that a plugin prints (client.authentication.k8s.io). Pure. Any thread.
 */
#ifndef EVREC_EXEC_CREDENTIAL_H
#define EVREC_EXEC_CREDENTIAL_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Strings of mem_alloc. It has a token, or a certificate with its key, or both. */
struct exec_credential {
	char *token;             /* not checked: may hold any bytes but NUL */
	char *certificate, *key; /* PEM, likewise not checked */
	int64_t expires;         /* ns since 1970; EVREC_UNSET: it has no end */
};

/*
 * Reads an ExecCredential, which must have this apiVersion. 0; EVREC_EINVALID: it is none, or has no credential;
 * EVREC_ENOMEM. After an error there is nothing to free. No message holds a part of the text.
 */
int exec_credential_read(evrec_str json, const char *api_version, struct exec_credential *c, evrec_error *err);
/* Frees the strings, and fills `c` with zeros. */
void exec_credential_destroy(struct exec_credential *c);

#pragma GCC visibility pop

#endif
