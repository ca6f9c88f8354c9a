#include "event/fit.h"

#include "base/lru.h"
#include "event/event.h"

#define QUALIFIED_NAME_MAX 63 /* without its prefix */
#define HASH_SIZE 9           /* a hyphen and eight digits */

void fit_free(struct fit *fit)
{
	buf_free(&fit->note);
	buf_free(&fit->reason);
	buf_free(&fit->action);
	buf_free(&fit->instance);
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The API server's IsQualifiedName: a name, perhaps with a DNS subdomain and a slash before it. */
static bool is_qualified_name(evrec_str s)
{
	const char *slash = s.len == 0 ? NULL : memchr(s.data, '/', s.len);
	size_t i;

	if (slash != NULL) {
		const evrec_str prefix = { s.data, (size_t)(slash - s.data) };

		if (!is_dns_subdomain(prefix)) {
			return false;
		}
		s = (evrec_str){ slash + 1, s.len - prefix.len - 1 };
	}
	if (s.len == 0 || s.len > QUALIFIED_NAME_MAX || !is_alphanumeric(s.data[0]) ||
	    !is_alphanumeric(s.data[s.len - 1])) {
		return false;
	}
	for (i = 0; i < s.len; i++) {
		if (!is_alphanumeric(s.data[i]) && s.data[i] != '-' && s.data[i] != '_' && s.data[i] != '.') {
			return false;
		}
	}
	return true;
}

static int check(const evrec_fields *event, evrec_error *err)
{
	if (!is_qualified_name(event->controller)) {
		return error_set(err, EVREC_EINVALID, "reportingController: \"%.*s\" is no qualified name",
		                 (int)utf8_floor(event->controller, QUALIFIED_NAME_MAX), event->controller.data);
	}
	if (check_type(event->type, err) != 0) {
		return EVREC_EINVALID;
	}
	if (event->related.ns.len != 0 && event->regarding.ns.len == 0) {
		return error_set(err, EVREC_EINVALID,
		                 "related: it is in a namespace, but the regarding object is in none");
	}
	return 0;
}

/* The head of a long instance, and a hash of the whole. */
static void put_short(struct buf *out, evrec_str instance)
{
	const uint32_t hash = (uint32_t)lru_hash(instance);

	buf_put(out, instance.data, utf8_floor(instance, FIT_FIELD_MAX - HASH_SIZE));
	buf_printf(out, "-%08x", hash);
}

static void fit_instance(struct buf *out, evrec_fields *event, evrec_str host_name)
{
	evrec_str whole = event->instance;
	size_t at;

	buf_clear(out);
	if (whole.len == 0) {
		buf_put_str(out, event->controller);
		buf_put(out, "-", 1);
		buf_put_str(out, host_name);
		whole = buf_str(out);
	}
	if (whole.len > FIT_FIELD_MAX) {
		at = out->len;
		/* Appended after the whole instance, which may lie in the same buffer. */
		if (!buf_reserve(out, FIT_FIELD_MAX)) {
			return;
		}
		whole = event->instance.len != 0 ? whole : (evrec_str){ out->data, at };
		put_short(out, whole);
		whole = (evrec_str){ out->data + at, out->len - at };
	}
	event->instance = whole;
}

int fit_event(struct fit *fit, evrec_fields *event, evrec_str host_name, evrec_error *err)
{
	if (check(event, err) != 0) {
		return EVREC_EINVALID;
	}
	buf_clear(&fit->note);
	buf_clear(&fit->reason);
	buf_clear(&fit->action);
	event->note = text_clean(event->note, FIT_NOTE_MAX, &fit->note);
	event->reason = text_clean(event->reason, FIT_FIELD_MAX, &fit->reason);
	event->action = event->action.len == 0 ? event->reason : text_clean(event->action, FIT_FIELD_MAX, &fit->action);
	fit_instance(&fit->instance, event, host_name);
	if (fit->note.failed || fit->reason.failed || fit->action.failed || fit->instance.failed) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	return 0;
}
