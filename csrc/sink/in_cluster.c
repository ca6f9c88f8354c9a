#define _GNU_SOURCE /* strerror_r */

#include "base/file.h"
#include "http/pem.h"
#include "sink/sink.h"

#include <errno.h>
#include <stdlib.h>

#define FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
#define CA_MAX 1048576

/* The address of a pod's API server, and the files of its service account. */
struct account {
	struct buf server, token_file, ca_file, ca;
};

/* The value of a variable; NULL and *err: it is not set. evrec.h forbids threads that change the environment meanwhile. */
static const char *variable(const char *name, evrec_error *err)
{
	const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	if (value == NULL || *value == '\0') {
		error_set(err, EVREC_EINVALID, "%s is not set: this is no pod of a cluster", name);
		return NULL;
	}
	return value;
}

static int find_server(struct account *account, evrec_error *err)
{
	const char *host = variable("KUBERNETES_SERVICE_HOST", err), *port;
	bool is_bare_ipv6;

	if (host == NULL) {
		return EVREC_EINVALID;
	}
	port = variable("KUBERNETES_SERVICE_PORT", err);
	if (port == NULL) {
		return EVREC_EINVALID;
	}
	is_bare_ipv6 = strchr(host, ':') != NULL && *host != '[';
	buf_printf(&account->server, is_bare_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
	return 0;
}

static int read_ca(struct account *account, evrec_error *err)
{
	const char *path = buf_cstr(&account->ca_file), *fault;
	char reason[64];

	if (account->ca_file.failed) {
		return 0;
	}
	if (!file_read(path, CA_MAX, &account->ca)) {
		return account->ca.failed ? 0
		                          : error_set(err, EVREC_EINVALID, "ca: %s: %s", path,
		                                      strerror_r(errno, reason, sizeof(reason)));
	}
	fault = account->ca.len > CA_MAX ? "is too large" : pem_certificate_fault(buf_str(&account->ca));
	return fault == NULL ? 0 : error_set(err, EVREC_EINVALID, "ca: %s: %s", path, fault);
}

/* Sets in `options`, which then borrows of `account`, what the caller has left open. */
static int complete(evrec_kubernetes_options *options, evrec_str folder, struct account *account, evrec_error *err)
{
	int code = find_server(account, err);

	if (code != 0) {
		return code;
	}
	if (options->token.len == 0 && options->token_file.len == 0 && options->exec == NULL) {
		buf_put_str(&account->token_file, folder);
		buf_put_str(&account->token_file, EVREC_STR("/token"));
		options->token_file = buf_str(&account->token_file);
	}
	if (options->ca.len == 0 && !options->insecure_skip_tls_verify) {
		buf_put_str(&account->ca_file, folder);
		buf_put_str(&account->ca_file, EVREC_STR("/ca.crt"));
		code = read_ca(account, err);
		options->ca = buf_str(&account->ca);
	}
	options->server = buf_str(&account->server);
	if (code == 0 &&
	    (account->server.failed || account->token_file.failed || account->ca_file.failed || account->ca.failed)) {
		code = error_set(err, EVREC_ENOMEM, "no memory");
	}
	return code;
}

evrec_sink *evrec_sink_in_cluster(evrec_str folder, const evrec_kubernetes_options *options, evrec_error *err)
{
	struct account account = { 0 };
	evrec_kubernetes_options own;
	evrec_sink *sink = NULL;

	if (options != NULL) {
		own = *options;
	} else {
		evrec_kubernetes_options_init(&own);
	}
	if (own.server.len != 0) {
		error_set(err, EVREC_EINVALID, "server: not together with the service account of a pod");
	} else if (complete(&own, folder.len != 0 ? folder : EVREC_STR(FOLDER), &account, err) == 0) {
		sink = evrec_sink_kubernetes(&own, err);
	}
	buf_free(&account.server);
	buf_free(&account.token_file);
	buf_free(&account.ca_file);
	buf_free(&account.ca);
	return sink;
}
