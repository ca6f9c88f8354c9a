/*
 * Reads an API server's events. A query lists. A watch asks for the resource version of a list of one event, and watches from
 * there on:
 *
 *   VERSION  --the answer-----------------------------------> WATCHING
 *   WATCHING --the stream ends-------------------------------> WATCHING, from the last resource version on
 *            --410: the server has forgotten this version----> LISTING
 *   LISTING  --the last page---------------------------------> TELLING
 *            --410: the token of the next page has expired---> LISTING, from the first page on
 *   TELLING  --all are told, of a watch----------------------> WATCHING
 *
 * As a listing is returned only once it is complete, no event is returned twice if the listing begins anew. Resource
 * versions are compared as numbers: client-go's resourceversion.CompareResourceVersion does so.
 */
#include "read/cluster_inner.h"

#include "base/clock.h"
#include "event/event.h"
#include "kubernetes/request.h"

#define PAGE_LIMIT 500
#define WATCH_SECONDS 300

static struct cluster_reader *reader_of(evrec_reader *reader)
{
	return (struct cluster_reader *)reader;
}

static int no_memory(evrec_error *err)
{
	return error_set(err, EVREC_ENOMEM, "no memory");
}

/* ---- requests ---- */

static int ask(struct cluster_reader *r, evrec_error *err)
{
	const bool watch = r->phase == WATCHING;
	const struct event_list list = {
		.api = EVREC_CORE_V1,
		.ns = r->ns,
		.selector = buf_str(&r->selector),
		.limit = watch                 ? 0
		         : r->phase == VERSION ? 1
		                               : r->page_limit,
		.token = buf_str(&r->token),
		.watch = watch,
		.resource_version = buf_str(&r->version),
		.seconds = WATCH_SECONDS,
	};
	char *path;
	int code = event_list_path(&list, &path, err);

	if (code == 0) {
		/*
		 * The timeout is half a minute longer than the server's own, for a connection whose server has
		 * vanished.
		 */
		connection_get(r->connection, path, watch ? (WATCH_SECONDS + 30) * EVREC_SECOND : 0);
		r->asked = true;
		r->used = 0;
	}
	return code;
}

/* ---- steps ---- */

/* An answer has ended. 0 or an error. */
static int ended(struct cluster_reader *r, evrec_error *err)
{
	const struct connection *c = r->connection;

	if (c->status / 100 != 2) {
		return cluster_failed(r, c->status, err);
	}
	if (r->phase != WATCHING) {
		return cluster_read_page(r, err);
	}
	/* If the server ends a stream at once, the next request waits. */
	return cluster_retry(r, err);
}

static int tell(struct cluster_reader *r, evrec_found *found, evrec_error *err)
{
	const struct ranked *next = ranking_next(&r->ranking);

	if (next == NULL && r->watch) {
		ranking_clear(&r->ranking);
		cluster_go_to(r, WATCHING);
	}
	if (next == NULL) {
		return EVREC_READ_END;
	}
	buf_clear(&r->base.json);
	buf_put(&r->base.json, next->text, next->len);
	return reader_show(&r->base, event_from_json((evrec_str){ next->text, next->len }), false, found, err);
}

/* Sends the request if it is due, and receives. EVREC_READ_END: something has changed; EVREC_READ_WAIT; or an error. */
static int step(struct cluster_reader *r, int64_t deadline, evrec_error *err)
{
	const int64_t now = clock_monotonic(evrec_clock_real());
	int code = 0;

	if (!r->asked && now < r->due) {
		reader_sleep(r->due < deadline ? r->due : deadline, CLUSTER_RETRY_MAX);
		return now >= deadline ? EVREC_READ_WAIT : EVREC_READ_END;
	}
	if (!r->asked) {
		code = ask(r, err);
	}
	if (code != 0) {
		return code;
	}
	switch (connection_step(r->connection, deadline)) {
	case CONNECTION_NONE:
		return EVREC_READ_WAIT;
	case CONNECTION_BYTES:
		return EVREC_READ_END;
	case CONNECTION_ENDED:
		return ended(r, err);
	}
	return EVREC_READ_WAIT;
}

static int cluster_begin(evrec_reader *reader, int64_t deadline, evrec_error *err)
{
	struct cluster_reader *r = reader_of(reader);
	int result = EVREC_READ_END;

	while (!r->begun && result == EVREC_READ_END) {
		result = step(r, deadline, err);
	}
	return result;
}

static int cluster_next(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err)
{
	struct cluster_reader *r = reader_of(reader);
	int result = EVREC_READ_END;

	while (result == EVREC_READ_END) {
		if (r->phase == TELLING) {
			result = tell(r, found, err);
			if (result == EVREC_READ_END && !r->watch) {
				return EVREC_READ_END;
			}
		} else if (r->phase == WATCHING && r->asked) {
			result = cluster_read_stream(r, found, err);
		}
		if (result == EVREC_READ_END && r->phase != TELLING) {
			result = step(r, deadline, err);
		}
	}
	return result;
}

/* ---- life ---- */

static void cluster_free(evrec_reader *reader)
{
	struct cluster_reader *r = reader_of(reader);

	connection_free(r->connection);
	mem_free(r->ns);
	buf_free(&r->selector);
	buf_free(&r->token);
	buf_free(&r->version);
	buf_free(&r->new_version);
	ranking_free(&r->ranking);
	mem_free(r);
}

static const struct reader_ops ops = { .begin = cluster_begin, .next = cluster_next, .free = cluster_free };

/* 0, EVREC_ENOMEM, or EVREC_EINVALID: the namespace is none. */
static int prepare(struct cluster_reader *r, evrec_error *err)
{
	const evrec_str ns = r->filter->query.ns;

	filter_put_selector(r->filter, &r->selector);
	r->ns = ns.len == 0 ? NULL : str_dup(ns);
	if (r->selector.failed || (ns.len != 0 && r->ns == NULL)) {
		return no_memory(err);
	}
	return ns.len == 0 || is_dns_label(ns) ? 0 : error_set(err, EVREC_EINVALID, "namespace: must be a DNS label");
}

evrec_reader *cluster_reader_open(const evrec_sink *sink, const struct filter *filter, bool watch, evrec_error *err)
{
	struct cluster_reader *r = mem_zalloc(sizeof(*r));

	if (r == NULL) {
		no_memory(err);
		return NULL;
	}
	r->base.ops = &ops;
	r->filter = filter;
	r->watch = watch;
	r->phase = watch ? VERSION : LISTING;
	r->page_limit = PAGE_LIMIT;
	r->ranking.descending = !watch && filter->query.order == EVREC_NEWEST;
	r->ranking.limit = watch ? 0 : filter->query.limit;
	if (prepare(r, err) == 0) {
		r->connection = connection_new(sink, err);
	}
	if (r->connection == NULL) {
		cluster_free(&r->base);
		return NULL;
	}
	return &r->base;
}
