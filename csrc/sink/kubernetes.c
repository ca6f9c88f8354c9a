#include "base/file.h"
#include "base/line.h"
#include "http/credentials.h"
#include "http/http_client.h"
#include "sink/resume_instances.h"
#include "sink/sink.h"

#include <unistd.h>

struct kubernetes_sink {
	evrec_sink base;
	evrec_kubernetes_options options;
	char *strings; /* what `options` points to */
	evrec_str *resume_instances;
	struct exec_command *command;
	/* From before the process goes into a chroot: */
	int token_folder; /* a descriptor, or -1 */
	struct resolved resolved;
};

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct kubernetes_sink *own = (struct kubernetes_sink *)sink;
	struct protocol *p = kubernetes_protocol_new(&own->options, write_encode, err);

	if (p != NULL && own->command != NULL && !kubernetes_protocol_use(p, own->command, evrec_clock_real())) {
		p->ops->free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	if (p != NULL && !kubernetes_protocol_keep_addresses(p, &own->resolved)) {
		p->ops->free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	if (p != NULL && own->token_folder >= 0) {
		kubernetes_protocol_keep_token_folder(p, own->token_folder);
	}
	return p;
}

static void add_command(struct fingerprint *f, const struct exec_command *command)
{
	fingerprint_add(f, "exec", str_from(command == NULL ? NULL : command->process.path));
	if (command == NULL) {
		return;
	}
	for (size_t i = 0; command->process.argv[i] != NULL; i++) {
		fingerprint_mix(f, str_from(command->process.argv[i]));
	}
	fingerprint_mix(f, str_from(command->api_version));
	/* Without the last one: the members of its JSON come in the order in which a Lua state iterates a table. */
	for (size_t i = 0; command->own_env[i + 1] != NULL; i++) {
		fingerprint_mix(f, str_from(command->own_env[i]));
	}
}

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	const struct kubernetes_sink *own = (const struct kubernetes_sink *)sink;
	const evrec_kubernetes_options *o = &own->options;

	fingerprint_add(f, "server", o->server);
	fingerprint_add(f, "token_file", o->token_file);
	/* A token that was read from a file may have changed since, so only the file's path is compared. */
	fingerprint_add(f, "token", o->token_file.len != 0 ? (evrec_str){ NULL, 0 } : o->token);
	fingerprint_add(f, "ca_file", o->ca);
	fingerprint_add(f, "client_certificate_file", o->client_certificate_file);
	fingerprint_add(f, "client_key_file", o->client_key_file);
	if (o->client_certificate_file.len == 0) {
		fingerprint_add(f, "client_certificate", o->client_certificate);
		fingerprint_add(f, "client_key", o->client_key);
	}
	fingerprint_add_number(f, "insecure_skip_tls_verify", o->insecure_skip_tls_verify);
	fingerprint_add_number(f, "max_in_flight", o->max_in_flight);
	fingerprint_add_number(f, "timeout", o->timeout);
	fingerprint_add_number(f, "resume", o->resume);
	fingerprint_add_number(f, "resume_instances", (int64_t)o->resume_instances_len);
	for (size_t i = 0; i < o->resume_instances_len; i++) {
		fingerprint_mix(f, o->resume_instances[i]);
	}
	add_command(f, own->command);
}

static void hide_secrets(const evrec_sink *sink, char *text)
{
	secret_hide(text, ((const struct kubernetes_sink *)sink)->options.token);
}

static void free_kind(evrec_sink *sink)
{
	struct kubernetes_sink *own = (struct kubernetes_sink *)sink;

	mem_free(own->strings);
	resolved_free(&own->resolved);
	mem_free(own->resume_instances);
	exec_command_release(own->command);
	if (own->token_folder >= 0) {
		(void)close(own->token_folder);
	}
}

/* Copies the strings that `options` points to. NULL: no memory. */
static char *own_strings(evrec_kubernetes_options *options)
{
	evrec_str *const strings[] = { &options->server,
		                       &options->token,
		                       &options->token_file,
		                       &options->ca,
		                       &options->client_certificate,
		                       &options->client_key,
		                       &options->client_certificate_file,
		                       &options->client_key_file };

	return strings_dup(strings, sizeof(strings) / sizeof(strings[0]));
}

/* The token that the file holds now. NULL: an error. */
static char *read_token(evrec_str file, evrec_error *err)
{
	char *path = str_dup(file), *token;

	if (path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	token = token_file_read(path, err);
	mem_free(path);
	return token;
}

/* The certificate and key in the files, unless they are given; false: an error. */
static bool read_pair(const evrec_kubernetes_options *options, struct key_pair *pair, evrec_error *err)
{
	char *certificate = NULL, *key = NULL;
	bool ok;

	if (options->client_certificate_file.len == 0 || options->client_certificate.len != 0) {
		return true;
	}
	if (str_copy(&certificate, options->client_certificate_file) && str_copy(&key, options->client_key_file)) {
		ok = key_pair_read(certificate, key, pair, err) == 0;
	} else {
		ok = false;
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	mem_free(certificate);
	mem_free(key);
	return ok;
}

static bool is_kubernetes(const evrec_sink *sink)
{
	return sink->free == free_kind;
}

const evrec_kubernetes_options *kubernetes_sink_options(const evrec_sink *sink)
{
	return is_kubernetes(sink) ? &((const struct kubernetes_sink *)sink)->options : NULL;
}

struct exec_command *kubernetes_sink_command(const evrec_sink *sink)
{
	return is_kubernetes(sink) ? ((const struct kubernetes_sink *)sink)->command : NULL;
}

static evrec_sink *make_sink(const evrec_kubernetes_options *options, evrec_error *err)
{
	const struct exec_cluster cluster = { options->server, options->ca, options->insecure_skip_tls_verify };
	struct kubernetes_sink *sink = sink_new(sizeof(*sink), &options->common, err);

	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "kubernetes";
	sink->base.open = open_protocol;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.hide_secrets = hide_secrets;
	sink->base.free = free_kind;
	sink->token_folder = -1;
	sink->options = *options;
	sink->options.common = sink->base.options; /* with strings of its own */
	sink->options.exec = NULL;
	if (options->exec != NULL) {
		sink->command = exec_command_new(options->exec, &cluster, err);
		if (sink->command == NULL) {
			evrec_sink_release(&sink->base);
			return NULL;
		}
	}
	sink->strings = own_strings(&sink->options);
	sink->resume_instances = resume_instances_copy(options->resume_instances, options->resume_instances_len);
	sink->options.resume_instances = sink->resume_instances;
	if (sink->strings == NULL || sink->resume_instances == NULL ||
	    (options->resolve_early && !resolved_look_up(&sink->resolved, sink->options.server))) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	if (options->token_file.len != 0) {
		sink->token_folder = token_folder_open(sink->options.token_file.data);
	}
	return &sink->base;
}

/* With absolute paths of the files that are read again. */
static evrec_sink *make_sink_of_files(evrec_kubernetes_options *options, evrec_error *err)
{
	evrec_str *const files[] = { &options->token_file, &options->client_certificate_file,
		                     &options->client_key_file };
	struct buf paths[3] = { 0 };
	evrec_sink *sink;
	bool ok = true;

	for (size_t i = 0; i < 3; i++) {
		if (files[i]->len != 0 && file_put_absolute(&paths[i], *files[i])) {
			*files[i] = buf_str(&paths[i]);
		}
		ok = ok && !paths[i].failed;
	}
	sink = ok ? make_sink(options, err) : NULL;
	if (!ok) {
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	for (size_t i = 0; i < 3; i++) {
		buf_free(&paths[i]);
	}
	return sink;
}

evrec_sink *evrec_sink_kubernetes(const evrec_kubernetes_options *options, evrec_error *err)
{
	evrec_kubernetes_options own = *options;
	struct key_pair pair = { NULL, NULL };
	evrec_sink *sink = NULL;
	char *token = NULL;

	if (options->token.len != 0 && options->token_file.len != 0) {
		error_set(err, EVREC_EINVALID, "token: not together with token_file");
		return NULL;
	}
	if (options->exec != NULL && (options->token.len != 0 || options->token_file.len != 0)) {
		error_set(err, EVREC_EINVALID, "exec: not together with token or token_file");
		return NULL;
	}
	if (kubernetes_check_options(options, err) != 0) {
		return NULL;
	}
	if ((options->token_file.len == 0 || (token = read_token(options->token_file, err)) != NULL) &&
	    read_pair(options, &pair, err)) {
		own.token = token != NULL ? str_from(token) : own.token;
		if (pair.certificate != NULL) {
			own.client_certificate = str_from(pair.certificate);
			own.client_key = str_from(pair.key);
		}
		sink = make_sink_of_files(&own, err);
	}
	mem_free(token);
	key_pair_free(&pair);
	return sink;
}
