/*
 * batch.h - encodes log records as the body of a request: an ExportLogsServiceRequest of OTLP 1.x, as protobuf or JSON,
 * with gzip if requested. No I/O. A batch is for one thread at a time.
 *
 *   batch = otlp_batch_new(&options);
 *   otlp_batch_add(batch, &record);          for each record
 *   body = otlp_batch_finish(batch, &len);   the batch is empty again
 *
 * Its buffers are reused: from the second body on, adding a record allocates nothing, and finishing allocates the body.
 */
#ifndef EVREC_OTLP_BATCH_H
#define EVREC_OTLP_BATCH_H

#include "otlp/record.h"

#pragma GCC visibility push(hidden)

enum otlp_encoding {
	OTLP_PROTOBUF, /* every receiver takes it */
	OTLP_JSON,
	OTLP_ENCODINGS
};
/* The Content-Type of a body; static. */
const char *otlp_content_type(enum otlp_encoding encoding);

struct otlp_options {
	enum otlp_encoding encoding;
	bool gzip; /* the body then needs "Content-Encoding: gzip" */
	/*
	 * Attributes that each resource has before those of its record, such as service.name. Copied. Of two equal keys
	 * the last one is used. A pair is left out if its key or value is empty, or if evrec sets the key from the
	 * event (otlp_record_owns).
	 */
	evrec_map resource;
};

struct otlp_batch;

/* An empty batch. NULL: no memory. */
struct otlp_batch *otlp_batch_new(const struct otlp_options *options);
void otlp_batch_free(struct otlp_batch *batch); /* NULL is fine */

/*
 * Appends a record, which is borrowed for the call. A record with the same resource as the record before shares its
 * ResourceLogs. Invalid UTF-8 is replaced, as a receiver may refuse a whole body for it. False: no memory; the batch is
 * unchanged.
 */
bool otlp_batch_add(struct otlp_batch *batch, const struct otlp_record *record);
/*
 * Likewise, but returns OTLP_FULL if the batch has a record, and the body might exceed `max` bytes with this one. The
 * estimate is up to some hundred bytes too large.
 */
enum otlp_added { OTLP_ADDED, OTLP_FULL, OTLP_NO_MEMORY };
enum otlp_added otlp_batch_add_within(struct otlp_batch *batch, const struct otlp_record *record, size_t max);
size_t otlp_batch_len(const struct otlp_batch *batch);  /* its records */
size_t otlp_batch_size(const struct otlp_batch *batch); /* the bytes of the body if it were finished now, before gzip */
void otlp_batch_clear(struct otlp_batch *batch);        /* forgets its records, keeps its buffers */

/*
 * Returns the body, the caller's (mem_free), sets *len, and clears the batch. NULL: no memory; the batch is cleared
 * all the same.
 */
char *otlp_batch_finish(struct otlp_batch *batch, size_t *len);

#pragma GCC visibility pop

#endif
