#include "exec/credential.h"

#include "base/fork_lock.h"

#include <jansson.h>

static int wrong(evrec_error *err, const char *fault)
{
	return error_set(err, EVREC_EINVALID, "its output is no ExecCredential: %s", fault);
}

/* A string of an object, if it is not empty; else NULL. */
static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text == NULL || *text == '\0' ? NULL : text;
}

static bool is_absent(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value == NULL || json_is_null(value);
}

/* Some plugins use the year 9999 for a credential that does not expire, which is beyond 64 bits of nanoseconds. */
static int read_expiry(const json_t *status, struct exec_credential *c, evrec_error *err)
{
	const char *text = member(status, "expirationTimestamp");

	c->expires = EVREC_UNSET;
	if (is_absent(status, "expirationTimestamp")) {
		return 0;
	}
	if (text == NULL || !rfc3339_parse_clamped(str_from(text), &c->expires)) {
		return wrong(err, "'expirationTimestamp' is no time (RFC 3339)");
	}
	if (c->expires == INT64_MAX) {
		c->expires = EVREC_UNSET;
	}
	return 0;
}

static bool copy(char **to, const char *text)
{
	*to = text == NULL ? NULL : str_dup(str_from(text));
	return text == NULL || *to != NULL;
}

static int read_status(const json_t *status, struct exec_credential *c, evrec_error *err)
{
	const char *token = member(status, "token");
	const char *certificate = member(status, "clientCertificateData"), *key = member(status, "clientKeyData");
	int code;

	if ((certificate == NULL) != (key == NULL)) {
		return wrong(err, "'clientCertificateData' and 'clientKeyData' go together");
	}
	if (token == NULL && key == NULL) {
		return wrong(err, "there is no token and no client certificate in 'status'");
	}
	code = read_expiry(status, c, err);
	if (code != 0) {
		return code;
	}
	if (!copy(&c->token, token) || !copy(&c->certificate, certificate) || !copy(&c->key, key)) {
		exec_credential_destroy(c);
		return error_set(err, EVREC_ENOMEM, "no memory for its output");
	}
	return 0;
}

/* NULL: it is no JSON. */
static json_t *parse(evrec_str json)
{
	json_t *root;

	fork_lock_enter(); /* jansson may initialize itself */
	root = json.len == 0 ? NULL : json_loadb(json.data, json.len, 0, NULL);
	fork_lock_leave();
	return root;
}

int exec_credential_read(evrec_str json, const char *api_version, struct exec_credential *c, evrec_error *err)
{
	json_t *root = parse(json);
	const char *kind = member(root, "kind"), *version = member(root, "apiVersion");
	int code;

	*c = (struct exec_credential){ .expires = EVREC_UNSET };
	if (!json_is_object(root)) {
		code = wrong(err, "it is no JSON object");
	} else if (kind == NULL || strcmp(kind, "ExecCredential") != 0) {
		code = wrong(err, "'kind' is another");
	} else if (version == NULL || strcmp(version, api_version) != 0) {
		code = error_set(err, EVREC_EINVALID,
		                 "its output is no ExecCredential: 'apiVersion' is not the kubeconfig's, %s",
		                 api_version);
	} else {
		code = read_status(json_object_get(root, "status"), c, err);
	}
	json_decref(root);
	return code;
}

void exec_credential_destroy(struct exec_credential *c)
{
	mem_free(c->token);
	mem_free(c->certificate);
	mem_free(c->key);
	*c = (struct exec_credential){ .expires = EVREC_UNSET };
}
