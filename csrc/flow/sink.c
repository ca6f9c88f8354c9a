#include "flow/sink.h"

#include "flow/write.h"

static evrec_sink *sink_new(const char *name, struct transport *(*open)(const evrec_sink *, evrec_error *),
                            evrec_error *err)
{
	evrec_sink *sink = mem_zalloc(sizeof(*sink));

	if (sink == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	atomic_init(&sink->refs, 1);
	sink->name = name;
	sink->open = open;
	evrec_kubernetes_options_init(&sink->options);
	return sink;
}

evrec_sink *evrec_sink_retain(evrec_sink *sink)
{
	atomic_fetch_add_explicit(&sink->refs, 1, memory_order_relaxed);
	return sink;
}

void evrec_sink_release(evrec_sink *sink)
{
	if (sink == NULL || atomic_fetch_sub(&sink->refs, 1) != 1) {
		return;
	}
	if (sink->ops.free != NULL) {
		sink->ops.free(sink->ctx);
	}
	mem_free(sink->strings);
	mem_free(sink);
}

void evrec_kubernetes_options_init(evrec_kubernetes_options *options)
{
	*options = (evrec_kubernetes_options){
		.max_in_flight = 32,
		.timeout = 10 * EVREC_SECOND,
	};
	evrec_limits_init(&options->limits);
}

static struct transport *kubernetes_open(const evrec_sink *sink, evrec_error *err)
{
	return http_transport_new(&sink->options, write_encode, err);
}

/* Gathers the strings of `options` in one block, and makes it point there. NULL: no memory. */
static char *own_strings(evrec_kubernetes_options *options)
{
	evrec_str *strings[] = {
		&options->server,     &options->token, &options->token_file, &options->ca, &options->client_certificate,
		&options->client_key, &options->spool,
	};
	const size_t n = sizeof(strings) / sizeof(strings[0]);
	size_t i, len = 0;
	char *block, *p;

	for (i = 0; i < n; i++) {
		len += strings[i]->len + 1;
	}
	block = p = mem_zalloc(len);
	for (i = 0; block != NULL && i < n; i++) {
		if (strings[i]->len != 0) {
			memcpy(p, strings[i]->data, strings[i]->len);
		}
		strings[i]->data = p;
		p += strings[i]->len + 1;
	}
	return block;
}

evrec_sink *evrec_sink_kubernetes(const evrec_kubernetes_options *options, evrec_error *err)
{
	evrec_kubernetes_options own = *options;
	char *token = NULL;
	evrec_sink *sink;

	if (options->token.len != 0 && options->token_file.len != 0) {
		error_set(err, EVREC_EINVALID, "token: not together with token_file");
		return NULL;
	}
	if (http_check_options(options, err) != 0) {
		return NULL;
	}
	if (options->spool.len != 0 && memchr(options->spool.data, '\0', options->spool.len) != NULL) {
		error_set(err, EVREC_EINVALID, "spool: must be the name of a file");
		return NULL;
	}
	if (options->token_file.len != 0) {
		char *path = str_dup(options->token_file);

		if (path == NULL) {
			error_set(err, EVREC_ENOMEM, "no memory");
			return NULL;
		}
		token = token_file_read(path, err);
		mem_free(path);
		if (token == NULL) {
			return NULL;
		}
		own.token = str_from(token);
	}
	sink = sink_new("kubernetes", kubernetes_open, err);
	if (sink != NULL) {
		sink->strings = own_strings(&own);
		sink->options = own;
		if (sink->strings == NULL) {
			error_set(err, EVREC_ENOMEM, "no memory");
			evrec_sink_release(sink);
			sink = NULL;
		}
	}
	mem_free(token);
	return sink;
}

static struct transport *file_open(const evrec_sink *sink, evrec_error *err)
{
	return file_transport_new(sink->strings, write_encode, err);
}

evrec_sink *evrec_sink_file(evrec_str path, const evrec_limits *limits, evrec_error *err)
{
	evrec_sink *sink;

	if (path.len == 0 || memchr(path.data, '\0', path.len) != NULL) {
		error_set(err, EVREC_EINVALID, "path: must be the name of a file, or -");
		return NULL;
	}
	if (limits != NULL && outbox_check_limits(limits, err) != 0) {
		return NULL;
	}
	sink = sink_new("file", file_open, err);
	if (sink == NULL) {
		return NULL;
	}
	if (limits != NULL) {
		sink->options.limits = *limits;
	}
	sink->options.max_in_flight = 1; /* lines stay in the order of the events */
	sink->strings = str_dup(path);
	if (sink->strings == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(sink);
		return NULL;
	}
	return sink;
}

static struct transport *call_open(const evrec_sink *sink, evrec_error *err)
{
	return call_transport_new((evrec_sink *)sink, err);
}

evrec_sink *evrec_sink_new(const evrec_sink_ops *ops, void *ctx, const evrec_limits *limits, evrec_error *err)
{
	evrec_sink *sink;

	if (ops == NULL || ops->create == NULL) {
		error_set(err, EVREC_EINVALID, "create: a sink needs this function");
		return NULL;
	}
	if (limits != NULL && outbox_check_limits(limits, err) != 0) {
		return NULL;
	}
	sink = sink_new(ops->name == NULL ? "custom" : ops->name, call_open, err);
	if (sink != NULL) {
		if (limits != NULL) {
			sink->options.limits = *limits;
		}
		sink->options.max_in_flight = 1;
		sink->ops = *ops;
		sink->ctx = ctx;
	}
	return sink;
}
