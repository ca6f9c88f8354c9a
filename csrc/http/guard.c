#include "http/guard.h"

/*
 * In bytes. Requests under way, 32 by default, may each have a buffer of 16 KiB filled before they are given anything.
 * An empty frame has 9 bytes, and takes about 50 ns; a record by itself some microseconds.
 */
#define SPENT_MAX ((size_t)2 * 1024 * 1024)
#define RECORD_COST 256

static void on_record(void *ctx, size_t len)
{
	struct guard *g = ctx;

	g->spent += RECORD_COST + len;
	if (g->spent > SPENT_MAX) {
		sockets_break(g->sockets);
		g->breaks++;
		g->spent = 0;
	}
}

bool guard_set_up(struct guard *g, const struct sockets *sockets, CURL *easy)
{
	g->sockets = sockets;
	g->records = (struct tls_records){ on_record, g };
	return loaded_curl_version() >= 0x080700 || tls_records_watch(&g->records, easy);
}
