/* write_fixture.h - an event of a pod, the writes that stand for it, and the bodies of their requests. */
#ifndef EVREC_UNIT_WRITE_FIXTURE_H
#define EVREC_UNIT_WRITE_FIXTURE_H

#include "unit.h"

#include "sink/write.h"

/* A part of a body that stands for two occurrences. */
#define WRITE_SERIES_OF_2 "\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:21.123456Z\"}"

/* A Warning of the pod shop/web-0, which occurred once. */
evrec_fields write_fixture_event(void);

/* Occurrence number `count` of the series of `event`, a second after the one before. It points to the event. */
struct write_draft write_fixture_draft(const evrec_fields *event, int32_t count);
/* A write of it. The caller owns it. */
void *write_fixture_make(const evrec_fields *event, int32_t count);

/* The body is as expected, and for the namespace "shop". */
void write_fixture_check(const void *item, enum body body, enum evrec_api api, enum reader reader,
                         const char *expected);
/* The patch of the write has the expected body in either API. */
void write_fixture_check_patch(const void *item, enum reader reader, const char *expected);

#endif
