/*
 * request.h - the HTTP requests that write and read Events: method, path and content type. Pure. Any thread.
 */
#ifndef EVREC_REQUEST_H
#define EVREC_REQUEST_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct event_request {
	const char *method, *content_type; /* static */
	char *path;                        /* from "/api" or "/apis" on, escaped; freed with mem_free */
};

/*
 * Creates an Event by this API in namespace `ns`, or patches the one of this name; neither is escaped. 0; EVREC_EINVALID: `ns` or
 * `name` can be no segment of a path; EVREC_ENOMEM. After an error there is nothing to free.
 */
int event_request_create(struct event_request *request, enum evrec_api api, const char *ns, evrec_error *err);
int event_request_patch(struct event_request *request, enum evrec_api api, const char *ns, const char *name,
                        evrec_error *err);

/* A request for a list of Events, or for a watch of them. */
struct event_list {
	enum evrec_api api;
	const char *ns;     /* NULL: all namespaces */
	evrec_str selector; /* of fields; may be empty */
	unsigned limit;     /* of a page; 0: none. A watch has no pages */
	evrec_str token;    /* the `continue` token of the page before; empty for the first page */
	bool watch;
	evrec_str resource_version; /* of a watch, which returns later changes */
	unsigned seconds;           /* of a watch: the server ends it after this time */
};
/*
 * The path and query of such a request, for GET; the strings are not escaped. *path is freed with mem_free. 0;
 * EVREC_EINVALID: `ns` can be no segment of a path; EVREC_ENOMEM.
 */
int event_list_path(const struct event_list *list, char **path, evrec_error *err);

#pragma GCC visibility pop

#endif
