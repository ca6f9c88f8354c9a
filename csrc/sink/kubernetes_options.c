/* The options of a Kubernetes sink: defaults, checks, and those of its HTTP client. */
#include "sink/resume_instances.h"
#include "sink/sink.h"

void evrec_kubernetes_options_init(evrec_kubernetes_options *options)
{
	*options = (evrec_kubernetes_options){
		.max_in_flight = 32,
		.timeout = 10 * EVREC_SECOND,
	};
	evrec_sink_options_init(&options->common);
}

struct http_options kubernetes_http_options(const evrec_kubernetes_options *options)
{
	return (struct http_options){
		.server = options->server,
		.token = options->token,
		.token_file = options->token_file,
		.ca = options->ca,
		.client_certificate = options->client_certificate,
		.client_key = options->client_key,
		.client_certificate_file = options->client_certificate_file,
		.client_key_file = options->client_key_file,
		.insecure_skip_tls_verify = options->insecure_skip_tls_verify,
		.accept = "application/json",
		.max_in_flight = options->max_in_flight,
		.timeout = options->timeout,
	};
}

int kubernetes_check_options(const evrec_kubernetes_options *options, evrec_error *err)
{
	const struct http_options http = kubernetes_http_options(options);
	int code = http_check_options(&http, err);

	if (code == 0) {
		code = sink_check_options(&options->common, err);
	}
	return code != 0 ? code : resume_check_options(options, err);
}
