#include "event/schema.h"

/* A row's offset: that of a member of evrec_fields, evrec_reference or evrec_owner. */
#define EVENT(member) .offset = offsetof(evrec_fields, member)
#define REFERENCE(member) .offset = offsetof(evrec_reference, member)
#define OWNER(member) .offset = offsetof(evrec_owner, member)

/* A row's names: in core/v1 and in events.k8s.io/v1, or one for both. */
#define NAMES(core, events) .name = { core, events }
#define NAME(both) NAMES(both, both)

/* A row's type. */
#define CONSTANT(core, events) .type = EVREC_FIELD_CONSTANT, .constant = { core, events }
#define STRING .type = EVREC_FIELD_STRING
#define TIME .type = EVREC_FIELD_TIME
#define MICROTIME .type = EVREC_FIELD_MICROTIME
#define INTEGER .type = EVREC_FIELD_INTEGER
#define TRISTATE .type = EVREC_FIELD_TRISTATE
#define MAP .type = EVREC_FIELD_MAP
#define OBJECT(table) .type = EVREC_FIELD_OBJECT, .fields = (table)
#define OWNERS(table) .type = EVREC_FIELD_OWNERS, .fields = (table)

#define ESSENTIAL .essential = true
#define NULLABLE .nullable = true
#define END .name = { NULL, NULL }

const evrec_field evrec_reference_schema[] = {
	{ NAME("kind"), STRING, REFERENCE(kind), ESSENTIAL },
	{ NAME("namespace"), STRING, REFERENCE(ns) },
	{ NAME("name"), STRING, REFERENCE(name), ESSENTIAL },
	{ NAME("uid"), STRING, REFERENCE(uid) },
	{ NAME("apiVersion"), STRING, REFERENCE(api_version) },
	{ NAME("resourceVersion"), STRING, REFERENCE(resource_version) },
	{ NAME("fieldPath"), STRING, REFERENCE(field_path) },
	{ END },
};

static const evrec_field owner_schema[] = {
	{ NAME("apiVersion"), STRING, OWNER(api_version) },
	{ NAME("kind"), STRING, OWNER(kind) },
	{ NAME("name"), STRING, OWNER(name) },
	{ NAME("uid"), STRING, OWNER(uid) },
	{ NAME("controller"), TRISTATE, OWNER(controller) },
	{ NAME("blockOwnerDeletion"), TRISTATE, OWNER(block_owner_deletion) },
	{ END },
};

static const evrec_field metadata_schema[] = {
	{ NAME("name"), STRING, EVENT(name) },
	{ NAME("namespace"), STRING, EVENT(ns) },
	{ NAME("resourceVersion"), STRING, EVENT(resource_version) },
	{ NAME("labels"), MAP, EVENT(labels) },
	{ NAME("annotations"), MAP, EVENT(annotations) },
	{ NAME("ownerReferences"), OWNERS(owner_schema), EVENT(owners) },
	{ END },
};

static const evrec_field source_schema[] = {
	{ NAME("component"), STRING, EVENT(component), ESSENTIAL },
	{ NAME("host"), STRING, EVENT(host), ESSENTIAL },
	{ END },
};

static const evrec_field series_schema[] = {
	{ NAME("count"), INTEGER, EVENT(series_count), ESSENTIAL },
	{ NAME("lastObservedTime"), MICROTIME, EVENT(series_last) },
	{ NAME("state"), STRING, EVENT(series_state) },
	{ END },
};

const evrec_field evrec_event_schema[] = {
	[SCHEMA_KIND] = { NAME("kind"), CONSTANT("Event", "Event") },
	[SCHEMA_API_VERSION] = { NAME("apiVersion"), CONSTANT("v1", "events.k8s.io/v1") },
	[SCHEMA_METADATA] = { NAME("metadata"), OBJECT(metadata_schema) },
	[SCHEMA_REGARDING] = { NAMES("involvedObject", "regarding"), OBJECT(evrec_reference_schema), EVENT(regarding) },
	[SCHEMA_REASON] = { NAME("reason"), STRING, EVENT(reason) },
	[SCHEMA_NOTE] = { NAMES("message", "note"), STRING, EVENT(note) },
	[SCHEMA_SOURCE] = { NAMES("source", "deprecatedSource"), OBJECT(source_schema) },
	[SCHEMA_FIRST] = { NAMES("firstTimestamp", "deprecatedFirstTimestamp"), TIME, EVENT(first) },
	[SCHEMA_LAST] = { NAMES("lastTimestamp", "deprecatedLastTimestamp"), TIME, EVENT(last) },
	[SCHEMA_COUNT] = { NAMES("count", "deprecatedCount"), INTEGER, EVENT(count) },
	[SCHEMA_TYPE] = { NAME("type"), STRING, EVENT(type) },
	[SCHEMA_EVENT_TIME] = { NAME("eventTime"), MICROTIME, EVENT(event_time), NULLABLE },
	[SCHEMA_SERIES] = { NAME("series"), OBJECT(series_schema) },
	[SCHEMA_ACTION] = { NAME("action"), STRING, EVENT(action) },
	[SCHEMA_RELATED] = { NAME("related"), OBJECT(evrec_reference_schema), EVENT(related) },
	[SCHEMA_CONTROLLER] = { NAMES("reportingComponent", "reportingController"), STRING, EVENT(controller) },
	[SCHEMA_INSTANCE] = { NAME("reportingInstance"), STRING, EVENT(instance) },
	[SCHEMA_ROWS] = { END },
};

static const unsigned char events_v1_order[SCHEMA_ROWS] = {
	SCHEMA_KIND,     SCHEMA_API_VERSION, SCHEMA_METADATA, SCHEMA_EVENT_TIME, SCHEMA_SERIES,  SCHEMA_CONTROLLER,
	SCHEMA_INSTANCE, SCHEMA_ACTION,      SCHEMA_REASON,   SCHEMA_REGARDING,  SCHEMA_RELATED, SCHEMA_NOTE,
	SCHEMA_TYPE,     SCHEMA_SOURCE,      SCHEMA_FIRST,    SCHEMA_LAST,       SCHEMA_COUNT,
};

const evrec_field *schema_field(enum evrec_api api, size_t i)
{
	return &evrec_event_schema[api == EVREC_CORE_V1 ? i : events_v1_order[i]];
}

bool evrec_api_parse(evrec_str api_version, enum evrec_api *api)
{
	const evrec_field *field = &evrec_event_schema[SCHEMA_API_VERSION];
	int i;

	for (i = EVREC_CORE_V1; i <= EVREC_EVENTS_V1; i++) {
		if (str_eq(api_version, str_from(field->constant[i]))) {
			*api = (enum evrec_api)i;
			return true;
		}
	}
	return false;
}
