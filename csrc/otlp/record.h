/*
 * record.h - a write as a log record of OpenTelemetry: which field of an event becomes which attribute. Pure. Any thread.
 *
 * The names are those of the OpenTelemetry collector's k8s_events receiver, so that most dashboards and queries made for it
 * find evrec's records:
 *
 *   resource     k8s.object.kind, .name, .uid, .fieldpath, .api_version, .resource_version   regarding
 *                k8s.namespace.name                     its namespace
 *                k8s.node.name                          the source's host
 *   attributes   k8s.event.reason, .action, .name
 *                k8s.event.start_time                   the first occurrence, RFC 3339 in UTC
 *                k8s.event.count                        an integer, at least 1: of the event, or of its series
 *                k8s.event.series.state                 Ongoing or Finished; evrec's own, without which the record of a
 *                                                       series' end would say nothing new
 *                reporting_controller, reporting_instance   or the source's component and host, if these are unset
 *   time         the last occurrence (event_last)
 *   severity     9 for the type Normal, 13 for Warning, none for another type, whose text is kept
 *   body         the note
 *
 * An unset field has no attribute, a time before 1970 is left out. The receiver also has k8s.event.uid, which an API server
 * assigns: evrec's events have none. The receiver has no names for the related object, the labels and the annotations, and
 * so they are left out. In 0.145 it has the namespace in the record's attributes, and no reporting_controller and
 * reporting_instance; its start_time is when the API server made the event, in the form of Go's time.String.
 */
#ifndef EVREC_OTLP_RECORD_H
#define EVREC_OTLP_RECORD_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* One record. Borrowed. */
struct otlp_record {
	const evrec_fields *event; /* with the count and the times that it has by now */
	int64_t observed;          /* wall-clock ns: when it is sent */
};

#define OTLP_RESOURCE_MAX 8 /* attributes that a record gives its resource */
#define OTLP_ATTRIBUTES_MAX 8

/* `text`, or `number` if text.data is NULL. */
struct otlp_attribute {
	evrec_str name, text;
	int64_t number;
};

/*
 * True: the resource attribute describes the event's object or node, even if this event has no such field. The same
 * attribute from the configuration would describe another object, such as the pod of the recorder.
 */
bool otlp_record_owns(evrec_str name);
/* The attributes of a record's resource. They borrow from the event. Returns their number. */
size_t otlp_record_resource(const struct otlp_record *record, struct otlp_attribute attributes[OTLP_RESOURCE_MAX]);

/* The fields of a record besides its resource. Borrows from the event, and `start_time` from the struct itself. */
struct otlp_log {
	uint64_t time, observed; /* ns since 1970; 0: unset */
	int severity;            /* 0: unset */
	evrec_str severity_text, body;
	struct otlp_attribute attributes[OTLP_ATTRIBUTES_MAX];
	size_t attributes_len;
	char start_time[EVREC_RFC3339_SIZE];
};
void otlp_record_log(const struct otlp_record *record, struct otlp_log *log);

#pragma GCC visibility pop

#endif
