/*
 * event.h - what makes an event: its checks, its name, its text. Pure but for the name's uniqueness. Any thread.
 */
#ifndef EVREC_EVENT_H
#define EVREC_EVENT_H

#include "base/base.h"
#include "base/utf8.h"

#pragma GCC visibility push(hidden)

/* What a recorder takes, in bytes. The API server's own limits are semantics 7. */
#define FIELD_MAX 1024               /* a field of a reference, component, host */
#define REASON_MAX 128               /* reason, action */
#define ANNOTATIONS_MAX (256 * 1024) /* keys and values together: the API server's limit */
#define NAMESPACE_MAX 63

/*
 * The checks of a recording call (semantics 1): 0, or EVREC_EINVALID and a message naming the field. A reference needs
 * a kind; its namespace, a part of URLs, has to be a DNS label.
 */
int check_reference(const evrec_reference *reference, const char *what, evrec_error *err);
/* `required`: not empty. Always: at most `max` bytes, valid UTF-8, no NUL. */
int check_text(evrec_str text, const char *what, size_t max, bool required, evrec_error *err);
int check_type(evrec_str type, evrec_error *err);
/* True for most of what check_text takes as optional, with a `max` of FIELD_MAX. False tells nothing. */
static inline bool is_plain(evrec_str text)
{
	return text.len <= FIELD_MAX && utf8_plain(text);
}
/* Keys are text; values may be anything here (they are cleaned later). Together within ANNOTATIONS_MAX. */
int check_map(evrec_map map, const char *what, evrec_error *err);

bool is_dns_label(evrec_str s); /* RFC 1123, at most 63 characters */

/*
 * `text` made printable in an event: clean UTF-8, at most `max` bytes, cut on a character boundary with a mark at the
 * end. Returns `text` itself where nothing had to be done, else `scratch`, whose failure the caller checks.
 */
evrec_str text_clean(evrec_str text, size_t max, struct buf *scratch);
#define CUT_MARK "\xE2\x80\xA6" /* an ellipsis */

/*
 * Appends a new event's name: `<reference name>.<time in hex>`, a UUID where that is no DNS subdomain (client-go's
 * GenerateEventName). A time that was used for the name is counted on from, so that no two events of one process get
 * one name, but for clocks that return to the very nanosecond after another stretch of time (name.c).
 */
void name_make(struct buf *out, evrec_str reference_name, int64_t now);

size_t event_size(const evrec_event *event); /* of its block of memory */

/* JSON of an event, and of its patch, appended. */
void json_event(struct buf *out, const evrec_fields *fields, enum evrec_api api);
void json_patch(struct buf *out, const evrec_fields *fields);
/*
 * And back, from core/v1: a recorder's event, so ownerReferences are not asked for. NULL: not an event with a name and
 * a namespace, or no memory.
 */
evrec_event *event_from_json(evrec_str json);

#pragma GCC visibility pop

#endif
