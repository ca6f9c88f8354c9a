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

static void put_escaped(struct buf *path, evrec_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (is_unreserved(text.data[i])) {
			buf_put(path, &text.data[i], 1);
		} else {
			buf_printf(path, "%%%02X", (unsigned)(unsigned char)text.data[i]);
		}
	}
}

static void put_segment(struct buf *path, const char *text)
{
	buf_put(path, "/", 1);
	put_escaped(path, str_from(text));
}

static void put_api(struct buf *path, enum evrec_api api)
{
	buf_put_str(path, api == EVREC_CORE_V1 ? EVREC_STR("/api/v1") : EVREC_STR("/apis/events.k8s.io/v1"));
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
	put_api(&path, api);
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

char *event_list_path(enum evrec_api api, const char *controller, unsigned limit, evrec_str token)
{
	struct buf path = { 0 };

	put_api(&path, api);
	buf_printf(&path, "/events?limit=%u&fieldSelector=", limit);
	buf_put_str(&path, api == EVREC_CORE_V1 ? EVREC_STR("reportingComponent") : EVREC_STR("reportingController"));
	put_escaped(&path, EVREC_STR("="));
	put_escaped(&path, str_from(controller));
	if (token.len != 0) {
		buf_put_str(&path, EVREC_STR("&continue="));
		put_escaped(&path, token);
	}
	(void)buf_cstr(&path);
	if (path.failed) {
		buf_free(&path);
	}
	return path.data;
}
