/*
 * event.h - the checks, the text, the name and the JSON of events. Pure, except that names are unique in the process.
 * Any thread.
 */
#ifndef EVREC_EVENT_H
#define EVREC_EVENT_H

#include "base/base.h"
#include "base/utf8.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* The most bytes that a recorder accepts. */
#define FIELD_MAX 1024               /* each field of a reference; component, host, instance, reason, action */
#define ANNOTATIONS_MAX (256 * 1024) /* keys and values together, as in the API server's validation of metadata */
#define NAMESPACE_MAX 63

/*
 * The checks of a recording call: 0, or EVREC_EINVALID and a message that begins with `what`. A reference needs a kind.
 * Its namespace, which becomes a part of URLs, must be a DNS label.
 */
int check_reference(const evrec_reference *reference, const char *what, evrec_error *err);
/* At most `max` bytes of valid UTF-8 without NUL; if `required`, not empty. */
int check_text(evrec_str text, const char *what, size_t max, bool required, evrec_error *err);
int check_type(evrec_str type, evrec_error *err);
/* True if check_text would accept an optional text of at most FIELD_MAX bytes. If false, it may still accept it. */
static inline bool is_plain(evrec_str text)
{
	return text.len <= FIELD_MAX && utf8_plain(text);
}
/*
 * Keys are checked as text. Values may be any bytes: the JSON encoder replaces invalid UTF-8. Together at most
 * ANNOTATIONS_MAX bytes.
 */
int check_map(evrec_map map, const char *what, evrec_error *err);

bool is_dns_label(evrec_str s); /* RFC 1123, at most 63 characters */
/* RFC 1123: at most 253 characters; labels of letters, digits and hyphens, which neither begin nor end a label. */
bool is_dns_subdomain(evrec_str s);

/*
 * Makes `text` fit for an event: valid UTF-8 of at most `max` bytes. A longer text is cut between two characters, and
 * ends with CUT_MARK. Returns `text` itself if it fits, else a text in `scratch`, whose `failed` the caller checks.
 */
evrec_str text_clean(evrec_str text, size_t max, struct buf *scratch);
#define CUT_MARK "\xE2\x80\xA6" /* an ellipsis */

/*
 * Appends a new event's name: `<reference name>.<time in hex>`, or a UUID if that is no DNS subdomain (client-go's
 * GenerateEventName). A time that another event's name has is replaced by a later one, so that names are unique within
 * the process; see name.c for the exception, if clocks are set back.
 */
void name_make(struct buf *out, evrec_str reference_name, int64_t now);

/*
 * The number of the reference: not 0, and unique in the process, even if another reference had the same address before.
 */
uint64_t prepared_ref_number(const evrec_prepared_ref *ref);

/* When the event occurred last: its series' last time, else `last`, else the event time; or EVREC_UNSET. Any thread. */
int64_t event_last(const evrec_fields *event);
/* The reporter of the event, by the fields of events.k8s.io/v1, else by the source of core/v1. Borrowed. Any thread. */
evrec_str event_controller(const evrec_fields *event);
evrec_str event_instance(const evrec_fields *event);

struct evrec_event {
	atomic_uint refs; /* 0: it is not counted */
	/*
	 * `fields` lacks its strings and arrays, which evrec_event_fields reads from `packed`. A sink that does not
	 * read the event's fields, or copies the event, so saves 266 of 6,200 instructions of a new event. Never true
	 * of a counted event, which several threads may read.
	 */
	bool unread;
	/*
	 * The packed event that has the strings and arrays of `fields`; its numbers may be others. NULL: they lie in
	 * several places.
	 */
	const evrec_packed *packed;
	evrec_fields fields;
};

/* Initializes jansson, once in a process, so that no child is forked in the middle of it. Before any use of jansson. */
void json_init(void);
/* Append the JSON of an event, and of its patch (evrec_fields_patch). */
void json_event(struct buf *out, const evrec_fields *fields, enum evrec_api api);
void json_patch(struct buf *out, const evrec_fields *fields);
/*
 * Reads an event from the JSON of either API: core/v1, if apiVersion does not say which. A field whose value has the
 * wrong type is read as unset. NULL: not an event with a name and a namespace, or no memory.
 */
evrec_event *event_from_json(evrec_str json);

/* Why a text is no event. */
enum json_fault {
	JSON_SOUND,    /* it is an event */
	JSON_CUT,      /* it is truncated JSON */
	JSON_NO_EVENT, /* it is no JSON, or not an event with a name and a namespace */
	JSON_NO_MEMORY,
};
/* Likewise, and sets *fault. */
evrec_event *event_from_json_or_fault(evrec_str json, enum json_fault *fault);

/*
 * Likewise from the object at *at, moves *at after it, and needs neither a name nor a namespace. NULL: no memory, or
 * jansson has to read the text (see json_scan_event).
 */
evrec_event *event_scan(const char **at, const char *end);
/* Reads an event from jansson's object in the same way, but needs neither a name nor a namespace. NULL: no memory. */
struct json_t;
evrec_event *event_from_object(const struct json_t *object);

/* The JSON of an event in an answer of an API server. */
struct event_item;
/* Appends it with the kind and the apiVersion, which the items of a list lack. The caller checks out->failed. */
void event_item_json(const struct event_item *item, enum evrec_api api, struct buf *out);

/* An event of an answer; both are borrowed for the call. False ends the reading: there is no memory. */
typedef bool event_found_func(void *ctx, const evrec_fields *event, const struct event_item *item);

/*
 * Reads a list of events in the JSON of this API, whose items do not name it: calls `found` for each one that has a name
 * and a namespace, and sets *next to the token of the next page, empty if this is the last one, and *version, unless it is
 * NULL, to the resource version of the list. False: it is no list, or there was no memory.
 */
bool event_list_from_json(evrec_str json, enum evrec_api api, event_found_func *found, void *ctx, struct buf *next,
                          struct buf *version);

enum event_change {
	EVENT_CHANGED, /* it was added or modified */
	EVENT_DELETED,
	EVENT_BOOKMARK, /* there was no change of an event until this resource version */
	EVENT_ERROR,    /* the server ends the watch, for the reason of an answer with `status` */
	EVENT_UNKNOWN,  /* another kind of change, no JSON, or no memory */
};
/*
 * Reads a change of a watch: calls `found` if an event with a name and a namespace was changed or deleted. Sets *version to
 * the resource version, empty of an error; *status to the code of an error, else to 0.
 */
enum event_change event_change_from_json(evrec_str json, enum evrec_api api, event_found_func *found, void *ctx,
                                         struct buf *version, int *status);

#pragma GCC visibility pop

#endif
