/*
 * otlp_reader.h - reads the bodies of OTLP requests, in either encoding, into the same text, so that a test can compare them
 * with what it expects and with each other. The test fails at anything that opentelemetry-proto does not allow there.
 *
 *   resource k8s.object.kind=Pod;k8s.object.name=web-0;
 *   log time=1 observed=2 severity=9 text=Normal body=hello k8s.event.reason=Started;k8s.event.count=#3;
 *
 * A member that is not there is left out, but for the two lists. Each ResourceLogs begins with "resource".
 */
#ifndef EVREC_UNIT_OTLP_READER_H
#define EVREC_UNIT_OTLP_READER_H

#include "unit.h"

/* Appends the text to `out`, which the test owns. */
void otlp_read_protobuf(evrec_str body, struct buf *out);
void otlp_read_json(evrec_str body, struct buf *out);

#endif
