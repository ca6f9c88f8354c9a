/* event_fields.h - the fields of an event as lists, an event that has all of them, and their comparison. */
#ifndef EVREC_UNIT_EVENT_FIELDS_H
#define EVREC_UNIT_EVENT_FIELDS_H

#include "unit.h"

#define EVENT_STRINGS 26

/* Sets the elements to all strings of `fields` that are in no map and no owner. */
void event_fields_strings(evrec_fields *fields, evrec_str *strings[EVENT_STRINGS]);
/* Every field is set, and no two are equal. The text is static. */
evrec_fields event_fields_full(void);
/* Fails the test unless all fields are equal. An unset string equals an empty one. */
void event_fields_check_same(const evrec_fields *a, const evrec_fields *b);
/*
 * Fails the test if a string or an array of `fields` does not lie in the `size` bytes at `memory`. Empty ones may not.
 */
void event_fields_check_within(const evrec_fields *fields, const void *memory, size_t size);

#endif
