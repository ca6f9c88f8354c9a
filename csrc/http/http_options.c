#include "http/credentials.h"
#include "http/curl.h"
#include "http/headers.h"
#include "http/http_client.h"
#include "http/pem.h"

#define MAX_IN_FLIGHT_MAX 1000
#define TIMEOUT_MAX (3600 * EVREC_SECOND)

static bool has_control(evrec_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.data[i] <= ' ' || s.data[i] == 0x7f) {
			return true;
		}
	}
	return false;
}

static CURLUcode look_for(CURLU *url, CURLUPart part)
{
	char *value = NULL;
	CURLUcode code = curl_url_get(url, part, &value, 0);

	curl_free(value);
	return code;
}

/* 0 if libcurl parses the text as a URL with a host and no user; else an error. */
static int check_url(const char *server, evrec_error *err)
{
	CURLU *url;
	CURLUcode taken, user, password;

	if (!curl_load(err)) {
		return EVREC_ESYSTEM;
	}
	url = curl_url();
	if (url == NULL) {
		return error_set(err, EVREC_ENOMEM, "server: no memory");
	}
	taken = curl_url_set(url, CURLUPART_URL, server, 0);
	user = look_for(url, CURLUPART_USER);
	password = look_for(url, CURLUPART_PASSWORD);
	curl_url_cleanup(url);
	if (taken == CURLUE_OUT_OF_MEMORY || user == CURLUE_OUT_OF_MEMORY || password == CURLUE_OUT_OF_MEMORY) {
		return error_set(err, EVREC_ENOMEM, "server: no memory");
	}
	/* libcurl accepts a third slash, and parses the text after it as the host. */
	if (taken != CURLUE_OK || strncmp(strstr(server, "://"), ":///", 4) == 0) {
		return error_set(err, EVREC_EINVALID, "server: expected https://host:port");
	}
	if (user == CURLUE_OK || password == CURLUE_OK) {
		return error_set(err, EVREC_EINVALID, "server: a user name or password has no place in it");
	}
	return 0;
}

static int check_server(evrec_str server, evrec_error *err)
{
	char *text;
	int code;

	if (server.len == 0) {
		return error_set(err, EVREC_EINVALID, "server: missing; expected https://host:port");
	}
	if (has_control(server) || memchr(server.data, '\\', server.len) != NULL) {
		return error_set(err, EVREC_EINVALID, "server: a space, control character or backslash in it");
	}
	if (memchr(server.data, '?', server.len) != NULL || memchr(server.data, '#', server.len) != NULL) {
		return error_set(err, EVREC_EINVALID, "server: a query or fragment has no place in it");
	}
	text = str_dup(server);
	if (text == NULL) {
		return error_set(err, EVREC_ENOMEM, "server: no memory");
	}
	if (strncmp(text, "https://", 8) != 0 && strncmp(text, "http://", 7) != 0) {
		code = error_set(err, EVREC_EINVALID, "server: expected https://host:port");
	} else {
		code = check_url(text, err);
	}
	mem_free(text);
	return code;
}

static int check_pem(evrec_str pem, const char *option, const char *(*fault_of)(evrec_str pem), evrec_error *err)
{
	const char *fault = pem.len == 0 ? NULL : fault_of(pem);

	return fault == NULL ? 0 : error_set(err, EVREC_EINVALID, "%s: %s", option, fault);
}

static bool has_nul(evrec_str s)
{
	return s.len != 0 && memchr(s.data, '\0', s.len) != NULL;
}

static int check_files(const struct http_options *o, evrec_error *err)
{
	const evrec_str certificate = o->client_certificate_file, key = o->client_key_file;

	if ((certificate.len == 0) != (key.len == 0)) {
		return error_set(err, EVREC_EINVALID,
		                 "client_certificate_file: both or none of it and client_key_file");
	}
	if (has_nul(certificate) || has_nul(key)) {
		return error_set(err, EVREC_EINVALID,
		                 "client_certificate_file: a NUL byte in it, or in client_key_file");
	}
	return 0;
}

static int check_tls(const struct http_options *o, evrec_error *err)
{
	int code;

	if ((code = check_pem(o->ca, "ca", pem_certificate_fault, err)) != 0 ||
	    (code = check_pem(o->client_certificate, "client_certificate", pem_certificate_fault, err)) != 0 ||
	    (code = check_pem(o->client_key, "client_key", pem_key_fault, err)) != 0) {
		return code;
	}
	if (o->client_certificate.len != 0 && o->client_key.len == 0) {
		return error_set(err, EVREC_EINVALID, "client_certificate: needs client_key");
	}
	if (o->client_key.len != 0 && o->client_certificate.len == 0) {
		return error_set(err, EVREC_EINVALID, "client_key: needs client_certificate");
	}
	return check_files(o, err);
}

int http_check_options(const struct http_options *o, evrec_error *err)
{
	int code;

	if ((code = check_server(o->server, err)) != 0 || (code = check_tls(o, err)) != 0) {
		return code;
	}
	if (o->token.len != 0 && !token_valid(o->token)) {
		return error_set(err, EVREC_EINVALID, TOKEN_FAULT);
	}
	if (has_nul(o->token_file)) {
		return error_set(err, EVREC_EINVALID, "token_file: a NUL byte in it");
	}
	if (headers_check(&o->headers, err) != 0) {
		return EVREC_EINVALID;
	}
	if (o->max_in_flight < 1 || o->max_in_flight > MAX_IN_FLIGHT_MAX) {
		return error_set(err, EVREC_EINVALID, "max_in_flight: must be 1 to %d", MAX_IN_FLIGHT_MAX);
	}
	if (o->timeout <= 0 || o->timeout > TIMEOUT_MAX) {
		return error_set(err, EVREC_EINVALID, "timeout: must be more than 0, and 1 hour at most");
	}
	return 0;
}
