/* The options of a Kubernetes sink: server, token, certificates. */
#include "fuzz.h"

#include "http/curl.h"
#include "http/http_client.h"

#include "sink/sink.h"

static bool encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *request)
{
	(void)item;
	(void)body;
	(void)api;
	(void)reader;
	*request = (struct encoded){ 0 };
	return false;
}

/* A part of a URL, freed with curl_free; NULL: the URL lacks it. */
static char *part_of(CURLU *url, CURLUPart part)
{
	char *value = NULL;

	return curl_url_get(url, part, &value, 0) == CURLUE_OK ? value : NULL;
}

static void check_part(CURLU *server, CURLU *request, CURLUPart part)
{
	char *a = part_of(server, part), *b = part_of(request, part);

	CHECK((a == NULL) == (b == NULL));
	CHECK(a == NULL || strcmp(a, b) == 0);
	curl_free(a);
	curl_free(b);
}

static bool has_suffix(const char *text, const char *suffix)
{
	return strlen(text) >= strlen(suffix) && strcmp(text + strlen(text) - strlen(suffix), suffix) == 0;
}

/* Whatever the option holds, a request goes to the host that it names, and to the path of events. */
static void check_server(evrec_str server)
{
	const char *events = "/api/v1/namespaces/shop/events";
	CURLU *alone = curl_url(), *whole = curl_url();
	char *text = str_dup(server), *path, *host;
	struct buf request = { 0 };

	CHECK(alone != NULL && whole != NULL && text != NULL);
	CHECK(strlen(text) == server.len);
	/* Programs read some characters differently: a backslash is a slash to some. */
	CHECK(strpbrk(text, "\\ \t\r\n?#") == NULL);
	buf_put_str(&request, server);
	while (request.data[request.len - 1] == '/') {
		request.len--;
	}
	buf_put_str(&request, str_from(events));
	CHECK(strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0);
	CHECK(curl_url_set(alone, CURLUPART_URL, text, 0) == CURLUE_OK);
	CHECK(curl_url_set(whole, CURLUPART_URL, buf_cstr(&request), CURLU_PATH_AS_IS) == CURLUE_OK);
	check_part(alone, whole, CURLUPART_SCHEME);
	check_part(alone, whole, CURLUPART_HOST);
	check_part(alone, whole, CURLUPART_PORT);
	CHECK(part_of(whole, CURLUPART_USER) == NULL && part_of(whole, CURLUPART_PASSWORD) == NULL);
	CHECK(part_of(whole, CURLUPART_QUERY) == NULL && part_of(whole, CURLUPART_FRAGMENT) == NULL);
	host = part_of(whole, CURLUPART_HOST);
	path = part_of(whole, CURLUPART_PATH);
	CHECK(host != NULL && *host != '\0');
	CHECK(path != NULL && has_suffix(path, events));
	curl_free(host);
	curl_free(path);
	buf_free(&request);
	mem_free(text);
	curl_url_cleanup(alone);
	curl_url_cleanup(whole);
}

static bool has_pem(evrec_str pem)
{
	size_t i;

	for (i = 0; i + 11 <= pem.len; i++) {
		if (memcmp(pem.data + i, "-----BEGIN ", 11) == 0) {
			return memchr(pem.data, '\0', pem.len) == NULL;
		}
	}
	return false;
}

static void check_accepted(const evrec_kubernetes_options *o)
{
	struct protocol *t = kubernetes_protocol_new(o, encode, NULL);

	CHECK(t != NULL);
	t->ops->free(t);
	check_server(o->server);
	CHECK(o->ca.len == 0 || has_pem(o->ca));
	CHECK(o->client_certificate.len == 0 || has_pem(o->client_certificate));
	CHECK(o->client_key.len == 0 || has_pem(o->client_key));
	CHECK((o->client_certificate.len == 0) == (o->client_key.len == 0));
	CHECK(o->token.len == 0 || memchr(o->token.data, '\n', o->token.len) == NULL);
	CHECK(o->token.len == 0 || memchr(o->token.data, '\r', o->token.len) == NULL);
	CHECK(o->max_in_flight >= 1 && o->max_in_flight <= 1000);
	CHECK(o->common.limits.max_pending >= 1 && o->common.limits.max_pending <= 10000000);
	CHECK(o->timeout > 0 && o->timeout <= 3600 * EVREC_SECOND);
}

/* The message names the option, and holds no secret. */
static void check_refused(const evrec_kubernetes_options *o, const evrec_error *err)
{
	static const char *const names[] = { "server",        "ca",          "client_certificate",
		                             "client_key",    "token",       "token_file",
		                             "max_in_flight", "max_pending", "timeout" };
	size_t i, len = strcspn(err->message, ":");
	bool named = false;

	CHECK(err->code == EVREC_EINVALID);
	CHECK(fuzz_is_utf8(str_from(err->message)));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		named = named || (strlen(names[i]) == len && strncmp(err->message, names[i], len) == 0);
	}
	CHECK(named);
	CHECK(strstr(err->message, "S3CRET") == NULL);
	CHECK(kubernetes_protocol_new(o, encode, NULL) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	evrec_kubernetes_options o;
	evrec_error err = { 0 };
	uint8_t choice = input_byte(&in);
	evrec_sink *sink;

	(void)http_global_init();
	evrec_kubernetes_options_init(&o);
	o.insecure_skip_tls_verify = choice & 1;
	if (choice & 2) {
		o.max_in_flight = (unsigned)input_u64(&in);
		o.common.limits.max_pending = (size_t)input_u64(&in);
		o.timeout = (int64_t)input_u64(&in);
	}
	o.server = input_text(&in);
	o.token = input_text(&in);
	o.ca = input_text(&in);
	o.client_certificate = input_text(&in);
	o.client_key = input_text(&in);
	if (kubernetes_check_options(&o, &err) == 0) {
		check_accepted(&o);
		sink = evrec_sink_kubernetes(&o, NULL);
		CHECK(sink != NULL);
		evrec_sink_release(sink);
	} else {
		check_refused(&o, &err);
	}
	input_end(&in);
	return 0;
}
