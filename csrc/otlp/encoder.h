/*
 * encoder.h - the two encodings of a batch's body, and the body that they append to. A body is for one thread at a time.
 */
#ifndef EVREC_OTLP_ENCODER_H
#define EVREC_OTLP_ENCODER_H

#include "otlp/record.h"

#pragma GCC visibility push(hidden)

/* All zero is an empty body. */
struct otlp_body {
	struct buf bytes;
	struct buf common; /* the encoded attributes that each resource begins with */
	size_t records;
	/* The last ResourceLogs: */
	size_t group; /* its offset */
	size_t attributes,
		attributes_len; /* offset and bytes of the resource's attributes that come from its records */
	size_t scope_len;       /* protobuf: the length of its ScopeLogs */
};

/* The functions append to a buffer. Its `failed` says whether there was memory. */
struct otlp_encoder {
	const char *content_type;
	/* Append the attributes of a resource, and a LogRecord, both without the enclosing field. Names are UTF-8. */
	void (*put_attributes)(struct buf *out, const struct otlp_attribute *attributes, size_t n);
	void (*put_log)(struct buf *out, const struct otlp_log *log);
	/*
	 * Begins a ResourceLogs with a record, from the bytes of put_attributes and put_log; OTLP_AROUND more bytes are
	 * reserved.
	 */
	void (*begin_group)(struct otlp_body *body, evrec_str attributes, evrec_str log);
	/* Appends a record to the last ResourceLogs; likewise. */
	void (*join_group)(struct otlp_body *body, evrec_str log);
	evrec_str end, empty; /* the end of a body with a record; a body without records */
};

/* The most bytes that a group or a record needs besides its attributes, the common ones and the log. */
#define OTLP_AROUND 256

extern const struct otlp_encoder otlp_protobuf, otlp_json;

/* Appends bytes to a buffer that has room for them. */
static inline void otlp_append(struct buf *out, const void *data, size_t len)
{
	if (len != 0) {
		memcpy(out->data + out->len, data, len);
		out->len += len;
	}
}

#pragma GCC visibility pop

#endif
