/* filter.h - decides which events match a query. Immutable once it is made: any thread. */
#ifndef EVREC_READ_FILTER_H
#define EVREC_READ_FILTER_H

#include "base/base.h"
#include "evrec_read.h"
#include "read/selector.h"

#pragma GCC visibility push(hidden)

struct filter {
	evrec_query query;        /* its strings are in `strings` */
	struct selector selector; /* of query.field_selector */
	evrec_str *types;         /* what query.types points to */
	char *strings;
};

/* A checked copy. NULL: EVREC_EINVALID, with the name of the field in the message, or EVREC_ENOMEM. */
struct filter *filter_new(const evrec_query *query, evrec_error *err);
void filter_free(struct filter *filter); /* NULL is fine */
/* Whether all filters of the query apply to the event. */
bool filter_matches(const struct filter *filter, const evrec_fields *event);
/*
 * Appends a field selector that an API server applies to core/v1 events. It selects all events that match, and maybe
 * others. The text is not escaped for URLs. The caller checks out->failed.
 */
void filter_put_selector(const struct filter *filter, struct buf *out);

#pragma GCC visibility pop

#endif
