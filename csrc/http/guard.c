#include "http/guard.h"

/*
 * In bytes. Requests under way, 32 by default, may each have a buffer of 16 KiB filled before they are given anything.
 * An empty frame has 9 bytes, and takes about 50 ns; a record by itself some microseconds.
 */
#define SPENT_MAX ((size_t)2 * 1024 * 1024)
#define RECORD_COST 256
#define RECORD_HEAD 5

static int on_trace(CURL *easy, curl_infotype type, char *data, size_t size, void *ctx)
{
	const unsigned char *head = (const unsigned char *)data;
	struct guard *g = ctx;

	(void)easy;
	if (type == CURLINFO_SSL_DATA_IN && size == RECORD_HEAD) {
		g->spent += RECORD_COST + ((size_t)head[3] << 8 | head[4]);
		if (g->spent > SPENT_MAX) {
			sockets_break(g->sockets);
			g->breaks++;
			g->spent = 0;
		}
	}
	return 0;
}

bool guard_set_up(struct guard *g, const struct sockets *sockets, CURL *easy)
{
	int failed = 0;

	g->sockets = sockets;
	if (loaded_curl_version() < 0x080700) {
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_trace);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_DEBUGDATA, g);
		failed |= (int)curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
	}
	return failed == 0;
}
