#include "event/event.h"

#include <jansson.h>

static evrec_str text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return (evrec_str){ json_string_value(value), json_string_length(value) };
}

static int64_t timestamp(const json_t *object, const char *key)
{
	int64_t ns;

	return evrec_rfc3339_parse(text(object, key), &ns) ? ns : EVREC_UNSET;
}

static int32_t integer(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static evrec_reference reference(const json_t *object)
{
	return (evrec_reference){
		.kind = text(object, "kind"),
		.api_version = text(object, "apiVersion"),
		.name = text(object, "name"),
		.ns = text(object, "namespace"),
		.uid = text(object, "uid"),
		.resource_version = text(object, "resourceVersion"),
		.field_path = text(object, "fieldPath"),
	};
}

/* The pairs are the caller's to free, also where there was no memory for all: then the result is false. */
static bool map(json_t *object, evrec_map *out, evrec_pair **pairs)
{
	const char *key;
	json_t *value;

	*pairs = NULL;
	if (json_object_size(object) == 0) {
		return true;
	}
	*pairs = mem_alloc(json_object_size(object) * sizeof(**pairs));
	if (*pairs == NULL) {
		return false;
	}
	out->pairs = *pairs;
	json_object_foreach(object, key, value)
	{
		(*pairs)[out->len++] =
			(evrec_pair){ { key, strlen(key) }, { json_string_value(value), json_string_length(value) } };
	}
	return true;
}

static void read_fields(const json_t *root, evrec_fields *f)
{
	const json_t *metadata = json_object_get(root, "metadata"), *source = json_object_get(root, "source"),
		     *series = json_object_get(root, "series");

	f->name = text(metadata, "name");
	f->ns = text(metadata, "namespace");
	f->resource_version = text(metadata, "resourceVersion");
	f->regarding = reference(json_object_get(root, "involvedObject"));
	f->related = reference(json_object_get(root, "related"));
	f->type = text(root, "type");
	f->reason = text(root, "reason");
	f->action = text(root, "action");
	f->note = text(root, "message");
	f->component = text(source, "component");
	f->host = text(source, "host");
	f->controller = text(root, "reportingComponent");
	f->instance = text(root, "reportingInstance");
	f->first = timestamp(root, "firstTimestamp");
	f->last = timestamp(root, "lastTimestamp");
	f->event_time = timestamp(root, "eventTime");
	f->count = integer(root, "count");
	f->series_count = integer(series, "count");
	f->series_last = timestamp(series, "lastObservedTime");
}

evrec_event *event_from_json(evrec_str json)
{
	json_t *root = json_loadb(json.data, json.len, JSON_ALLOW_NUL, NULL);
	const json_t *metadata = json_object_get(root, "metadata");
	evrec_pair *labels = NULL, *annotations = NULL;
	evrec_event *event = NULL;
	evrec_fields fields;

	evrec_fields_init(&fields);
	read_fields(root, &fields);
	if (fields.name.len != 0 && fields.ns.len != 0 &&
	    map(json_object_get(metadata, "labels"), &fields.labels, &labels) &&
	    map(json_object_get(metadata, "annotations"), &fields.annotations, &annotations)) {
		event = evrec_event_new(&fields);
	}
	mem_free(labels);
	mem_free(annotations);
	json_decref(root);
	return event;
}
