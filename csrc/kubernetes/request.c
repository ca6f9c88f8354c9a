#include "kubernetes/request.h"

/*
 * Kubernetes' own rule for a segment of a path (IsValidPathSegmentName). A server that decodes a URL before it takes it
 * apart, as the API server does, would take any other for a longer path, however it was escaped.
 */
static bool is_segment(const char *text)
{
	return *text != '\0' && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 && strpbrk(text, "/%") == NULL;
}

/* RFC 3986, 2.3 */
static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

static void put_segment(struct buf *path, const char *text)
{
	buf_put(path, "/", 1);
	for (; *text != '\0'; text++) {
		if (is_unreserved(*text)) {
			buf_put(path, text, 1);
		} else {
			buf_printf(path, "%%%02X", (unsigned)(unsigned char)*text);
		}
	}
}

/* `name` is NULL for the path of all Events of the namespace. */
static int set_path(struct event_request *request, enum evrec_api api, const char *ns, const char *name,
                    evrec_error *err)
{
	struct buf path = { 0 };

	if (!is_segment(ns) || (name != NULL && !is_segment(name))) {
		return error_set(err, EVREC_EINVALID,
		                 "a namespace or name that is empty, '.', '..' or has '/' or '%%' in it");
	}
	buf_put_str(&path, api == EVREC_CORE_V1 ? EVREC_STR("/api/v1") : EVREC_STR("/apis/events.k8s.io/v1"));
	buf_put_str(&path, EVREC_STR("/namespaces"));
	put_segment(&path, ns);
	put_segment(&path, "events");
	if (name != NULL) {
		put_segment(&path, name);
	}
	(void)buf_cstr(&path);
	if (path.failed) {
		buf_free(&path);
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	request->path = path.data;
	return 0;
}

int event_request_create(struct event_request *request, enum evrec_api api, const char *ns, evrec_error *err)
{
	*request = (struct event_request){ .method = "POST", .content_type = "application/json" };
	return set_path(request, api, ns, NULL, err);
}

int event_request_patch(struct event_request *request, enum evrec_api api, const char *ns, const char *name,
                        evrec_error *err)
{
	*request =
		(struct event_request){ .method = "PATCH", .content_type = "application/strategic-merge-patch+json" };
	return set_path(request, api, ns, name, err);
}
