#include "otlp/record.h"

#include "event/event.h"

#include <stddef.h>

#define SEVERITY_INFO 9
#define SEVERITY_WARN 13

struct row {
	evrec_str name;
	size_t offset; /* of an evrec_str in evrec_fields */
};

#define ROW(name, field)                                                                                               \
	{                                                                                                              \
		{ "" name, sizeof(name) - 1 }, offsetof(evrec_fields, field)                                           \
	}

static const struct row resource_rows[] = {
	ROW("k8s.node.name", host),
	ROW("k8s.namespace.name", regarding.ns),
	ROW("k8s.object.kind", regarding.kind),
	ROW("k8s.object.name", regarding.name),
	ROW("k8s.object.uid", regarding.uid),
	ROW("k8s.object.fieldpath", regarding.field_path),
	ROW("k8s.object.api_version", regarding.api_version),
	ROW("k8s.object.resource_version", regarding.resource_version),
};
_Static_assert(sizeof(resource_rows) / sizeof(*resource_rows) == OTLP_RESOURCE_MAX, "a record's resource has them all");

static size_t put(struct otlp_attribute *attributes, size_t n, evrec_str name, evrec_str text)
{
	attributes[n].name = name;
	attributes[n].text = text;
	return n + (text.len != 0);
}

bool otlp_record_owns(evrec_str name)
{
	static const char object[] = "k8s.object.";
	const size_t len = sizeof(object) - 1;

	return (name.len >= len && memcmp(name.data, object, len) == 0) ||
	       str_eq(name, EVREC_STR("k8s.namespace.name")) || str_eq(name, EVREC_STR("k8s.node.name"));
}

size_t otlp_record_resource(const struct otlp_record *record, struct otlp_attribute attributes[OTLP_RESOURCE_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < OTLP_RESOURCE_MAX; i++) {
		const char *field = (const char *)record->event + resource_rows[i].offset;

		n = put(attributes, n, resource_rows[i].name, *(const evrec_str *)(const void *)field);
	}
	return n;
}

static uint64_t time_of(int64_t ns)
{
	return ns > 0 ? (uint64_t)ns : 0; /* EVREC_UNSET is less than 0 */
}

static int severity_of(evrec_str type)
{
	if (str_eq(type, EVREC_STR("Normal"))) {
		return SEVERITY_INFO;
	}
	return str_eq(type, EVREC_STR("Warning")) ? SEVERITY_WARN : 0;
}

/* As precise as the API writes it: core/v1 in whole seconds, events.k8s.io/v1 in microseconds. */
static evrec_str start_time(const evrec_fields *event, char text[EVREC_RFC3339_SIZE])
{
	const bool micro = event->first == EVREC_UNSET;
	const int64_t first = micro ? event->event_time : event->first;

	return (evrec_str){ text, time_of(first) == 0 ? 0 : evrec_rfc3339_format(first, micro, text) };
}

void otlp_record_log(const struct otlp_record *record, struct otlp_log *log)
{
	const evrec_fields *event = record->event;
	const int32_t count = event->series_count != 0 ? event->series_count : event->count;
	struct otlp_attribute *a = log->attributes;
	size_t n = 0;

	log->time = time_of(event_last(event));
	log->observed = time_of(record->observed);
	log->severity = severity_of(event->type);
	log->severity_text = event->type;
	log->body = event->note;
	n = put(a, n, EVREC_STR("k8s.event.reason"), event->reason);
	n = put(a, n, EVREC_STR("k8s.event.action"), event->action);
	n = put(a, n, EVREC_STR("k8s.event.start_time"), start_time(event, log->start_time));
	n = put(a, n, EVREC_STR("k8s.event.name"), event->name);
	a[n++] = (struct otlp_attribute){ .name = EVREC_STR("k8s.event.count"), .number = count > 1 ? count : 1 };
	n = put(a, n, EVREC_STR("k8s.event.series.state"), event->series_state);
	n = put(a, n, EVREC_STR("reporting_controller"), event_controller(event));
	n = put(a, n, EVREC_STR("reporting_instance"), event_instance(event));
	log->attributes_len = n;
}
