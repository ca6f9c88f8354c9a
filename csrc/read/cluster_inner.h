/*
 * cluster_inner.h - shared by the files of a cluster's reader. Each calls only those below it:
 *
 *   cluster_reader.c the requests and their order
 *   cluster_answer.c reads answers
 *   cluster_phase.c  goes from one phase to another, also after a failure
 */
#ifndef EVREC_READ_CLUSTER_INNER_H
#define EVREC_READ_CLUSTER_INNER_H

#include "read/cluster.h"
#include "read/connection.h"
#include "read/ranking.h"

#pragma GCC visibility push(hidden)

#define CLUSTER_RETRY_MAX (30 * EVREC_SECOND) /* the longest backoff */

enum phase { VERSION, WATCHING, LISTING, TELLING };

struct cluster_reader {
	evrec_reader base;
	const struct filter *filter;
	struct connection *connection;
	enum phase phase;
	bool watch, begun;
	bool asked;        /* a request is under way */
	int64_t due;       /* when the next one is to be sent; monotonic */
	unsigned tries;    /* failed in a row */
	unsigned restarts; /* of this listing */
	unsigned page_limit;
	char *ns;
	struct buf selector;
	struct buf token;       /* of the next page */
	struct buf version;     /* the resource version after which a watch continues */
	struct buf new_version; /* of the change or page that was read last */
	struct ranking ranking; /* of a listing */
	size_t used;            /* bytes of the stream's body */
	evrec_event *found;     /* by the change that was read last, with its JSON in base.json */
};

/* ---- cluster_phase.c ---- */

/* Begins a phase, with a request that is due now. */
void cluster_go_to(struct cluster_reader *r, enum phase phase);
/* Sends the request again, with a growing backoff. 0, or EVREC_ESYSTEM after the last try. */
int cluster_retry(struct cluster_reader *r, evrec_error *err);
/* The request failed, with the connection's status or that of an error in a stream. 0 or an error. */
int cluster_failed(struct cluster_reader *r, int status, evrec_error *err);

/* ---- cluster_answer.c ---- */

/* Parses the whole answer to a list, and continues with the next page or phase. 0 or an error. */
int cluster_read_page(struct cluster_reader *r, evrec_error *err);
/* Reads the lines of a stream. EVREC_READ_EVENT; EVREC_READ_END: there is no whole line left; or an error. */
int cluster_read_stream(struct cluster_reader *r, evrec_found *found, evrec_error *err);

#pragma GCC visibility pop

#endif
