/*
 * request.h - the HTTP requests that write an Event: method, path and content type. Pure. Any thread.
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

/*
 * The path of a list of this controller's Events in all namespaces, a page of at most `limit`; `token` is what the page
 * before said of how to go on, empty for the first one. Freed with mem_free. NULL: no memory.
 */
char *event_list_path(enum evrec_api api, const char *controller, unsigned limit, evrec_str token);

#pragma GCC visibility pop

#endif
