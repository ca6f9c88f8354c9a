/*
 * schema.h - the rows of evrec_event_schema, by number. Pure. Any thread.
 */
#ifndef EVREC_SCHEMA_H
#define EVREC_SCHEMA_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* In the order of core/v1. */
enum schema_row {
	SCHEMA_KIND,
	SCHEMA_API_VERSION,
	SCHEMA_METADATA,
	SCHEMA_REGARDING,
	SCHEMA_REASON,
	SCHEMA_NOTE,
	SCHEMA_SOURCE,
	SCHEMA_FIRST,
	SCHEMA_LAST,
	SCHEMA_COUNT,
	SCHEMA_TYPE,
	SCHEMA_EVENT_TIME,
	SCHEMA_SERIES,
	SCHEMA_ACTION,
	SCHEMA_RELATED,
	SCHEMA_CONTROLLER,
	SCHEMA_INSTANCE,
	SCHEMA_ROWS
};

/* The i-th field of an event as `api` orders them, i below SCHEMA_ROWS. */
const evrec_field *schema_field(enum evrec_api api, size_t i);

#pragma GCC visibility pop

#endif
