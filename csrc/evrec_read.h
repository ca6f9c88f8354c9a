/*
 * evrec_read.h - looking at events: one reader, three sources of events.
 *
 *   evrec_source *source = evrec_source_store(EVREC_STR("/var/lib/evrec/events.db"), &err);
 *   evrec_query query;
 *   evrec_query_init(&query);
 *   query.mentions = (evrec_object_filter){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0") };
 *   evrec_reader *reader = evrec_source_query(source, &query, &err);
 *   evrec_found found;
 *   while (evrec_reader_next(reader, EVREC_FOREVER, &found, &err) == EVREC_READ_EVENT)
 *           puts(found.json.data);
 *   evrec_reader_free(reader);
 *   evrec_source_release(source);
 *
 * A source is a store (SQLite, which evrec_sink_store writes), a cluster (the Kubernetes API), or lines (a file that
 * evrec_sink_file wrote). All three answer the same query with the same events: a source that cannot select by a filter
 * reads more than it is asked for, and evrec filters.
 *
 * Threads. A source may be shared by threads. A reader belongs to one thread at a time. The functions that read wait for
 * I/O: they are not for the event loop of a server.
 *
 * Ownership and errors are those of evrec.h.
 */
#ifndef EVREC_READ_H
#define EVREC_READ_H

#include "evrec.h"

#pragma GCC visibility push(hidden)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- query ------------------------------------------------------------------------------------------------------- */

/* An object that an event names. An empty field matches all; a filter of empty fields is none. */
typedef struct evrec_object_filter {
	evrec_str kind;        /* compared without case */
	evrec_str api_version; /* "v1", "apps/v1" */
	evrec_str ns;
	evrec_str name;
	evrec_str uid;
} evrec_object_filter;

/* By the last time at which an event occurred: its series' last time, else lastTimestamp, else eventTime. */
enum evrec_order { EVREC_NEWEST, EVREC_OLDEST };

/* Which events are wanted: those to which every filter applies. An empty filter applies to all events. */
typedef struct evrec_query {
	evrec_str ns;                  /* namespace of the event */
	evrec_object_filter regarding; /* involvedObject, as `kubectl events --for` compares it */
	evrec_object_filter mentions;  /* either involvedObject or related */
	evrec_str controller;          /* reportingComponent, else source.component */
	evrec_str instance;            /* reportingInstance, else source.host */
	const evrec_str *types;        /* any of them; "Normal", "Warning" */
	size_t types_len;
	evrec_str reason;
	evrec_str action;
	int64_t since;            /* ns since 1970: last occurrence at or after it. INT64_MIN: no bound */
	int64_t before;           /* ns since 1970: last occurrence before it. INT64_MAX: no bound */
	evrec_str field_selector; /* as of the Kubernetes API: "type!=Normal,reason=Killing" */
	enum evrec_order order;   /* EVREC_NEWEST */
	size_t limit;             /* the most events; 0: no limit */
} evrec_query;
void evrec_query_init(evrec_query *query); /* matches every event, the newest first. Any thread */

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* An event, valid until the reader's next call. */
typedef struct evrec_found {
	evrec_event *event; /* the reader's; retain it to keep it. NULL of what is no event */
	evrec_str json;     /* the event as the source has it, NUL-terminated: with fields that evrec_fields lacks */
	bool deleted;       /* of a watch: the event expired, or was deleted */
} evrec_found;

/* The results of evrec_reader_next beside a negative enum evrec_code. */
enum evrec_read {
	EVREC_READ_END,   /* of a query: there are no more. The reader stays at its end */
	EVREC_READ_EVENT, /* *found is set */
	EVREC_READ_WAIT,  /* nothing came within `timeout` */
};

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
