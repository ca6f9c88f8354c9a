/* The phases of a cluster's reader, and its way on after a failure: the same request later, the list anew, or the end. */
#include "read/cluster_inner.h"

#include "base/clock.h"

#define RESTARTS_MAX 5 /* of one listing */
#define TRIES_MAX 4    /* of a request, until the reader has begun */
#define RETRY_FIRST (EVREC_SECOND / 4)

void cluster_go_to(struct cluster_reader *r, enum phase phase)
{
	r->phase = phase;
	r->asked = false;
	r->due = 0;
}

static void list_anew(struct cluster_reader *r)
{
	buf_clear(&r->token);
	ranking_clear(&r->ranking);
	cluster_go_to(r, LISTING);
}

/* Whether the same request would fail again. */
static bool is_final(int status)
{
	return status >= 300 && status < 500 && status != 408 && status != 409 && status != 429;
}

static int refused(const struct connection *c, evrec_error *err)
{
	const char *between = c->message[0] == '\0' ? "" : ": ";

	return c->status == 0 ? error_set(err, EVREC_ESYSTEM, "%s", c->message)
	                      : error_set(err, EVREC_ESYSTEM, "the API server answered %d%s%s", c->status, between,
	                                  c->message);
}

int cluster_retry(struct cluster_reader *r, evrec_error *err)
{
	const struct connection *c = r->connection;
	int64_t delay = r->tries < 7 ? RETRY_FIRST << r->tries : CLUSTER_RETRY_MAX;

	r->tries++;
	if (!(r->watch && r->begun) && r->tries == TRIES_MAX) {
		return refused(c, err);
	}
	if (c->retry_after > delay) {
		delay = c->retry_after;
	}
	r->asked = false;
	r->due = clock_monotonic(evrec_clock_real()) + (delay < CLUSTER_RETRY_MAX ? delay : CLUSTER_RETRY_MAX);
	return 0;
}

int cluster_failed(struct cluster_reader *r, int status, evrec_error *err)
{
	if (status == 410 && r->phase == WATCHING) {
		r->restarts = 0;
		list_anew(r);
		return 0;
	}
	if (status == 410 && r->phase == LISTING && r->restarts < RESTARTS_MAX) {
		r->restarts++;
		list_anew(r);
		return 0;
	}
	if (r->connection->too_long && r->phase == LISTING && r->page_limit > 1) {
		r->page_limit /= 2;
		r->asked = false;
		return 0;
	}
	/* The answer was cut, or came too slowly: a smaller page may arrive in time. */
	if (status == 0 && r->connection->body.len != 0 && r->phase == LISTING && r->page_limit > 1) {
		r->page_limit /= 2;
	}
	return is_final(status) || r->connection->too_long ? refused(r->connection, err) : cluster_retry(r, err);
}
