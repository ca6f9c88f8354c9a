#include "http/guard.h"

/*
 * In bytes. Each request in flight, 32 by default, may fill a buffer of 16 KiB before it gets any data. An empty frame
 * has 9 bytes, and takes about 50 ns; a record takes some microseconds.
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
