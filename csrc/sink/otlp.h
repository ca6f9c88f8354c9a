/*
 * otlp.h - the sink for OpenTelemetry: otlp.c has its configuration, otlp_options.c the checks of that, otlp_protocol.c its
 * protocol, otlp_parts.c the order in which the records of a batch are sent, otlp_size.c the size of its parts.
 */
#ifndef EVREC_SINK_OTLP_H
#define EVREC_SINK_OTLP_H

#include "evrec_otlp.h"
#include "http/http_client.h"
#include "sink/sink.h"

#pragma GCC visibility push(hidden)

#define OTLP_MAX_IN_FLIGHT 4 /* concurrent batches */

/* Checks ranges and forms without I/O: 0, or EVREC_EINVALID or EVREC_ENOMEM and a message that names the option. */
int otlp_check_options(const evrec_otlp_options *options, evrec_error *err);
/* The options of the sink's HTTP client; they borrow from `options`. */
struct http_options otlp_http_options(const evrec_otlp_options *options);
/* The part of the endpoint after the server, from its "/" or "?" on; may be empty. */
evrec_str otlp_endpoint_path(evrec_str endpoint);

/* The present event of an outbox's item in flight: write_fields. Without a lock. */
typedef evrec_fields fields_func(const void *item, enum body body);
/* NULL and *err: no memory, or an option that is wrong. */
struct protocol *otlp_protocol_new(const evrec_otlp_options *options, fields_func *fields, evrec_error *err);
/* As kubernetes_protocol_keep_addresses. */
bool otlp_protocol_keep_addresses(struct protocol *p, const struct resolved *resolved);

/*
 * A batch that may be sent in several parts, one after the other: parts that fit into a body, and halves of a part that
 * the receiver found too large. The records of a part are consecutive, so a part is the number of its records.
 */
#define OTLP_PARTS_MAX 40 /* a part of 65536 records can be halved 16 times, and cut once between */
struct otlp_parts {
	size_t at;                      /* the first record of the next part */
	size_t waiting[OTLP_PARTS_MAX]; /* the parts in reverse order: the last one is sent next */
	size_t len;
};
/* One part of n records, at least 1. */
void otlp_parts_begin(struct otlp_parts *parts, size_t n);
/* The records of the next part; 0: there is none. */
size_t otlp_parts_next(const struct otlp_parts *parts);
/* Splits the next part: its first n records, at least 1, are the next part, the others the part after it. */
void otlp_parts_cut(struct otlp_parts *parts, size_t n);
/* Splits the next part, of at least 2 records, into halves. */
void otlp_parts_halve(struct otlp_parts *parts);
/* The next part has been answered. */
void otlp_parts_pass(struct otlp_parts *parts);

/*
 * The size of parts, which follows the limit of a receiver. A receiver may also refuse a body for one record in it. So
 * a part that is refused as too large halves the size of later parts, but the pieces of that part do not. After some
 * parts that were taken, one part, a probe, may have twice the size. If the probe is taken, the size grows, and the
 * next part is a probe again. If the probe is refused, the next one comes after twice as many parts, up to a bound: so
 * only few bodies are sent twice to a receiver that has a limit.
 */
struct otlp_size {
	size_t bytes;      /* of a part */
	size_t max;        /* the most that `bytes` may be */
	unsigned taken;    /* parts that were taken since one was refused, without pieces; counted up to `patience` */
	unsigned patience; /* the number of accepted parts before a probe */
	bool probing;      /* a probe is under way */
};

/* A part that is sent, or about to be. */
struct otlp_part {
	size_t records;
	size_t bytes; /* of its body, before gzip */
	bool piece;   /* it is a piece of a part that was too large */
	bool probe;
};
void otlp_size_begin(struct otlp_size *size, size_t max);
/* The bytes that this part may have. The caller has set its `piece`. */
size_t otlp_size_limit(const struct otlp_size *size, const struct otlp_part *part);
/* The part is sent. Sets its `probe`. */
void otlp_size_sent(struct otlp_size *size, struct otlp_part *part);
/* The part was refused as too large, or was accepted, or failed otherwise (both false). */
void otlp_size_answered(struct otlp_size *size, const struct otlp_part *part, bool too_large, bool taken);

#pragma GCC visibility pop

#endif
