/* json_scan.h - reads the JSON of an event without building a tree. Pure. Any thread. */
#ifndef EVREC_JSON_SCAN_H
#define EVREC_JSON_SCAN_H

#include "base/json_room.h"

#pragma GCC visibility push(hidden)

/*
 * Reads the object at *at, sets all fields of *event as jansson would, and moves *at after the object and the white
 * space that follows it. Strings lie in the text or in `room`. False: jansson has to read the text, as it is no JSON,
 * there is no memory, or it has a feature that is rare in events: \u escapes, fractions, a field twice, a map of more
 * than 64 pairs, deeply nested values.
 */
bool json_scan_event(const char **at, const char *end, struct json_room *room, evrec_fields *event);

#pragma GCC visibility pop

#endif
