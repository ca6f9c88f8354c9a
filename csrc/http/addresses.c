#define _GNU_SOURCE /* getaddrinfo, strerror_r */

#include "http/addresses.h"

#include "http/http_client_inner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>

/* False: the address cannot stand in an entry. */
static bool put_address(struct buf *entry, const struct addrinfo *info, char separator)
{
	char text[INET6_ADDRSTRLEN];
	const struct sockaddr_in *v4;
	const struct sockaddr_in6 *v6;

	if (info->ai_family == AF_INET) {
		v4 = (const void *)info->ai_addr;
		buf_printf(entry, "%c%s", separator, inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)));
		return true;
	}
	if (info->ai_family == AF_INET6) {
		v6 = (const void *)info->ai_addr;
		if (v6->sin6_scope_id == 0) {
			buf_printf(entry, "%c[%s]", separator, inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)));
			return true;
		}
	}
	return false;
}

int addresses_format(const char *host, const char *port, const struct addrinfo *found, char **entry, evrec_error *err)
{
	struct buf made = { 0 };
	unsigned n = 0;
	int code = 0;

	buf_printf(&made, "%s:%s", host, port);
	for (; found != NULL && n < ADDRESSES_MAX; found = found->ai_next) {
		n += put_address(&made, found, n == 0 ? ':' : ',');
	}
	if (n == 0) {
		code = error_set(err, EVREC_ESYSTEM, "no address without a scope");
	}
	*entry = code == 0 && !made.failed ? str_dup(buf_str(&made)) : NULL;
	if (code == 0 && *entry == NULL) {
		code = error_set(err, EVREC_ENOMEM, "no memory");
	}
	buf_free(&made);
	return code;
}

static bool is_address(const char *host)
{
	struct in_addr v4;

	return *host == '[' || inet_pton(AF_INET, host, &v4) == 1;
}

static int look_up(const char *host, const char *port, char **entry, evrec_error *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char reason[64];
	int code;

	code = getaddrinfo(host, NULL, &hints, &found);
	if (code == EAI_MEMORY) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	if (code != 0) {
		return error_set(err, EVREC_ESYSTEM, "%s",
		                 code == EAI_SYSTEM ? strerror_r(errno, reason, sizeof(reason)) : gai_strerror(code));
	}
	code = addresses_format(host, port, found, entry, err);
	freeaddrinfo(found);
	return code;
}

int addresses_look_up(evrec_str server, char **entry, evrec_error *err)
{
	char *text = str_dup(server), *host = NULL, *port = NULL;
	CURLU *url = curl_url();
	int code;

	*entry = NULL;
	if (text == NULL || url == NULL || curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
		code = error_set(err, EVREC_ENOMEM, "no memory");
	} else {
		code = is_address(host) ? 0 : look_up(host, port, entry, err);
	}
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(url);
	mem_free(text);
	return code;
}

bool http_client_keep_addresses(struct http_client *client, const char *entry)
{
	client->addresses = curl_slist_append(NULL, entry);
	return client->addresses != NULL;
}
