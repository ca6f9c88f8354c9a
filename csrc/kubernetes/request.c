#include "kubernetes/request.h"

#include <stdio.h>

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

static void put_parameter(struct buf *path, const char *name, evrec_str value)
{
	if (value.len != 0) {
		buf_printf(path, "%c%s=", strchr(buf_cstr(path), '?') == NULL ? '?' : '&', name);
		put_escaped(path, value);
	}
}

static void put_number(struct buf *path, const char *name, unsigned value)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", value);
	put_parameter(path, name, value == 0 ? (evrec_str){ NULL, 0 } : str_from(text));
}

int event_list_path(const struct event_list *list, char **path, evrec_error *err)
{
	struct event_request all = { 0 };
	struct buf text = { 0 };
	int code;

	if (list->ns == NULL) {
		put_api(&text, list->api);
		buf_put_str(&text, EVREC_STR("/events"));
	} else {
		code = set_path(&all, list->api, list->ns, NULL, err);
		if (code != 0) {
			return code;
		}
		buf_put_str(&text, str_from(all.path));
		mem_free(all.path);
	}
	put_number(&text, "limit", list->limit);
	put_parameter(&text, "fieldSelector", list->selector);
	put_parameter(&text, "continue", list->token);
	if (list->watch) {
		put_parameter(&text, "watch", EVREC_STR("true"));
		put_parameter(&text, "allowWatchBookmarks", EVREC_STR("true"));
		put_parameter(&text, "resourceVersion", list->resource_version);
		put_number(&text, "timeoutSeconds", list->seconds);
	}
	(void)buf_cstr(&text);
	if (text.failed) {
		buf_free(&text);
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	*path = text.data;
	return 0;
}
