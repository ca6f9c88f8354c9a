/*
 * evrec_otlp.h - a sink that sends events as log records of OpenTelemetry, by OTLP over HTTP.
 *
 *   evrec_otlp_options options;
 *   evrec_otlp_options_init(&options);
 *   options.endpoint = EVREC_STR("http://collector:4318/v1/logs");
 *   evrec_sink *sink = evrec_sink_otlp(&options, &err);
 *
 * Each write of the sink is a log record: the first write of an event (`created` in the sink's stats), and each later
 * one (`patched`) with the event's present count. One request carries several records. Limits, spool, state file,
 * series and throttle are those of evrec.h's other sinks.
 *
 * Answers (OTLP 1.x, "OTLP/HTTP Response"):
 *
 *   2xx                             written. If it rejects n records of the batch (a partial success), the last n of the
 *                                   batch are dropped, _REJECTED, as a receiver does not say which
 *   429, 502, 503, 504, no answer   retried as one batch, after Retry-After if the server sent one
 *   413, 400 for a body too large   the batch is sent again in halves; a single record is dropped, _REJECTED. So even if
 *                                   the answer is cut
 *   any other                       dropped: 401 and 403 as _FORBIDDEN, else as _REJECTED. Redirects are not followed
 *
 * Ownership, errors and threads are those of evrec.h.
 */
#ifndef EVREC_OTLP_H
#define EVREC_OTLP_H

#include "evrec.h"

#pragma GCC visibility push(hidden)
#ifdef __cplusplus
extern "C" {
#endif

enum evrec_otlp_encoding { EVREC_OTLP_PROTOBUF, EVREC_OTLP_JSON };
enum evrec_otlp_compression { EVREC_OTLP_GZIP, EVREC_OTLP_NONE };

typedef struct evrec_otlp_options {
	evrec_sink_options common;
	evrec_str endpoint; /* http:// or https://, used as it is: "http://localhost:4318/v1/logs" */
	/*
	 * Sent with each request, 64 at most. A name is a token of RFC 9110, is given once, and is none of those that evrec
	 * sets: Accept-Encoding, Connection, Content-Encoding, Content-Length, Content-Type, Expect, Host, Keep-Alive,
	 * Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade. A value has no control character but tabs, and no space at
	 * its ends. Values are secret: no message and no line shows one of four bytes or more.
	 */
	evrec_map headers;
	enum evrec_otlp_encoding encoding;       /* EVREC_OTLP_PROTOBUF, which every receiver takes */
	enum evrec_otlp_compression compression; /* EVREC_OTLP_GZIP */
	int64_t timeout;                         /* of one request: 10 s, in ns */
	/*
	 * A request carries at most batch_max records (512; 1 to 65536), and ends before the record with which its
	 * body, not compressed, would exceed batch_bytes (1 MiB; 1 KiB to 16 MiB); a longer record goes alone. It is
	 * sent once batch_max writes wait, or half of max_pending or of max_pending_bytes is taken, or the first of
	 * them has waited for batch_delay (1 s, in ns; 0 to an hour), or half of max_age. evrec_broadcaster_flush,
	 * _shutdown and the end of the process do not wait for the delay. A spool's spool_after begins when the delay
	 * is over.
	 */
	size_t batch_max, batch_bytes;
	int64_t batch_delay;
	/*
	 * The time between two records of one event: 60 s, in ns; 0: none. Occurrences meanwhile are counted, and sent
	 * with the next record; they take no tokens. With series, the begin, the heartbeats and the end do not wait.
	 */
	int64_t min_interval;
	/*
	 * Attributes of the resource of all records, such as service.name: 64 at most, each name once. Attributes named
	 * k8s.object.*, k8s.namespace.name and k8s.node.name are left out: evrec sets them from the event.
	 */
	evrec_map resource;
	evrec_str ca;                             /* the text of a PEM file; unset: the system's authorities */
	evrec_str client_certificate, client_key; /* PEM, both or none */
	bool insecure_skip_tls_verify;
	bool resolve_early; /* as in evrec_kubernetes_options */
} evrec_otlp_options;
/* Sets the defaults. Any thread. */
void evrec_otlp_options_init(evrec_otlp_options *options);
/*
 * Copies `options`; NULL: the defaults. NULL, with *err set: EVREC_ENOMEM, or EVREC_EINVALID, with a message that begins
 * with the option's name. Nothing is opened before the first write.
 */
evrec_sink *evrec_sink_otlp(const evrec_otlp_options *options, evrec_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
