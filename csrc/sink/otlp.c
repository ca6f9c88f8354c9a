#include "sink/otlp.h"

#include "http/headers.h"

struct otlp_sink {
	evrec_sink base;
	evrec_otlp_options options;
	char *strings; /* what `options` points to, but for its maps */
	void *headers, *resource;
	struct resolved resolved;
};

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct otlp_sink *own = (struct otlp_sink *)sink;
	struct protocol *p = otlp_protocol_new(&own->options, write_fields, err);

	if (p != NULL && !otlp_protocol_keep_addresses(p, &own->resolved)) {
		p->ops->free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	return p;
}

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	const evrec_otlp_options *o = &((const struct otlp_sink *)sink)->options;

	fingerprint_add(f, "endpoint", o->endpoint);
	fingerprint_add_map(f, "headers", &o->headers);
	fingerprint_add_number(f, "encoding", o->encoding);
	fingerprint_add_number(f, "compression", o->compression);
	fingerprint_add_number(f, "timeout", o->timeout);
	fingerprint_add_number(f, "batch_max", (int64_t)o->batch_max);
	fingerprint_add_number(f, "batch_bytes", (int64_t)o->batch_bytes);
	fingerprint_add_number(f, "batch_delay", o->batch_delay);
	fingerprint_add_number(f, "min_interval", o->min_interval);
	fingerprint_add_map(f, "resource", &o->resource);
	fingerprint_add(f, "ca_file", o->ca);
	fingerprint_add(f, "client_certificate", o->client_certificate);
	fingerprint_add(f, "client_key", o->client_key);
	fingerprint_add_number(f, "insecure_skip_tls_verify", o->insecure_skip_tls_verify);
}

static void hide_secrets(const evrec_sink *sink, char *text)
{
	headers_hide(&((const struct otlp_sink *)sink)->options.headers, text);
}

static void free_kind(evrec_sink *sink)
{
	struct otlp_sink *own = (struct otlp_sink *)sink;

	mem_free(own->strings);
	mem_free(own->headers);
	mem_free(own->resource);
	resolved_free(&own->resolved);
}

/* Copies what the options point to. False: no memory. */
static bool copy_options(struct otlp_sink *sink, const evrec_otlp_options *options)
{
	evrec_otlp_options *own = &sink->options;
	evrec_str *const strings[] = { &own->endpoint, &own->ca, &own->client_certificate, &own->client_key };

	*own = *options;
	own->common = sink->base.options; /* with strings of its own */
	sink->strings = strings_dup(strings, sizeof(strings) / sizeof(strings[0]));
	sink->headers = map_dup(&options->headers, &own->headers);
	sink->resource = map_dup(&options->resource, &own->resource);
	return sink->strings != NULL && sink->headers != NULL && sink->resource != NULL;
}

evrec_sink *evrec_sink_otlp(const evrec_otlp_options *options, evrec_error *err)
{
	evrec_otlp_options defaults;
	struct otlp_sink *sink;

	if (options == NULL) {
		evrec_otlp_options_init(&defaults);
		options = &defaults;
	}
	if (otlp_check_options(options, err) != 0) {
		return NULL;
	}
	sink = sink_new(sizeof(*sink), &options->common, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "otlp";
	sink->base.shows_states = true;
	sink->base.min_interval = options->min_interval;
	sink->base.open = open_protocol;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.hide_secrets = hide_secrets;
	sink->base.free = free_kind;
	if (!copy_options(sink, options) ||
	    (options->resolve_early && !resolved_look_up(&sink->resolved, otlp_http_options(&sink->options).server))) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	return &sink->base;
}
