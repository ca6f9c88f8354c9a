#include "otlp/batch.h"

#include "base/utf8.h"
#include "otlp/encoder.h"
#include "otlp/gzip.h"

struct otlp_batch {
	const struct otlp_encoder *encoder;
	struct otlp_body body;
	struct buf attributes, log; /* the record that is added, encoded */
	struct gzip *gzip;          /* NULL: bodies are not compressed */
};

static const struct otlp_encoder *const encoders[OTLP_ENCODINGS] = { &otlp_protobuf, &otlp_json };

const char *otlp_content_type(enum otlp_encoding encoding)
{
	return encoders[encoding]->content_type;
}

/* True: a later pair has the same key. */
static bool is_replaced(const evrec_map *map, size_t i)
{
	for (size_t later = i + 1; later < map->len; later++) {
		if (str_eq(map->pairs[later].key, map->pairs[i].key) && map->pairs[later].value.len != 0) {
			return true;
		}
	}
	return false;
}

static void put_common(struct otlp_batch *batch, const evrec_map *map)
{
	struct buf *common = &batch->body.common, name = { 0 };

	for (size_t i = 0; i < map->len; i++) {
		const evrec_pair *pair = &map->pairs[i];
		struct otlp_attribute attribute = { .text = pair->value };

		if (pair->key.len == 0 || pair->value.len == 0 || is_replaced(map, i) || otlp_record_owns(pair->key)) {
			continue;
		}
		buf_clear(&name);
		utf8_clean(&name, pair->key);
		attribute.name = buf_str(&name);
		batch->encoder->put_attributes(common, &attribute, 1);
		common->failed = common->failed || name.failed;
	}
	buf_free(&name);
}

struct otlp_batch *otlp_batch_new(const struct otlp_options *options)
{
	struct otlp_batch *batch = mem_zalloc(sizeof(*batch));

	if (batch == NULL) {
		return NULL;
	}
	batch->encoder = encoders[options->encoding];
	batch->gzip = options->gzip ? gzip_new() : NULL;
	put_common(batch, &options->resource);
	if ((options->gzip && batch->gzip == NULL) || batch->body.common.failed) {
		otlp_batch_free(batch);
		return NULL;
	}
	return batch;
}

void otlp_batch_free(struct otlp_batch *batch)
{
	if (batch != NULL) {
		gzip_free(batch->gzip);
		buf_free(&batch->body.bytes);
		buf_free(&batch->body.common);
		buf_free(&batch->attributes);
		buf_free(&batch->log);
		mem_free(batch);
	}
}

static bool encode(struct otlp_batch *batch, const struct otlp_record *record)
{
	struct otlp_attribute attributes[OTLP_RESOURCE_MAX];
	struct otlp_log log;

	buf_clear(&batch->attributes);
	batch->encoder->put_attributes(&batch->attributes, attributes, otlp_record_resource(record, attributes));
	buf_clear(&batch->log);
	otlp_record_log(record, &log);
	batch->encoder->put_log(&batch->log, &log);
	return !batch->attributes.failed && !batch->log.failed;
}

/* True: the last record has these attributes of its resource, too. */
static bool is_same_resource(const struct otlp_body *body, evrec_str attributes)
{
	return body->records != 0 &&
	       str_eq((evrec_str){ body->bytes.data + body->attributes, body->attributes_len }, attributes);
}

enum otlp_added otlp_batch_add_within(struct otlp_batch *batch, const struct otlp_record *record, size_t max)
{
	struct otlp_body *body = &batch->body;
	size_t more;

	if (!encode(batch, record)) {
		return OTLP_NO_MEMORY;
	}
	more = batch->attributes.len + batch->log.len + body->common.len + OTLP_AROUND;
	if (body->records != 0 && (body->bytes.len > max || more > max - body->bytes.len)) {
		return OTLP_FULL;
	}
	if (!buf_reserve(&body->bytes, more)) {
		body->bytes.failed = false;
		return OTLP_NO_MEMORY;
	}
	if (is_same_resource(body, buf_str(&batch->attributes))) {
		batch->encoder->join_group(body, buf_str(&batch->log));
	} else {
		batch->encoder->begin_group(body, buf_str(&batch->attributes), buf_str(&batch->log));
	}
	body->records++;
	return OTLP_ADDED;
}

bool otlp_batch_add(struct otlp_batch *batch, const struct otlp_record *record)
{
	return otlp_batch_add_within(batch, record, SIZE_MAX) == OTLP_ADDED;
}

size_t otlp_batch_len(const struct otlp_batch *batch)
{
	return batch->body.records;
}

/* What is missing from the body. */
static evrec_str end_of(const struct otlp_batch *batch)
{
	return batch->body.records == 0 ? batch->encoder->empty : batch->encoder->end;
}

size_t otlp_batch_size(const struct otlp_batch *batch)
{
	return batch->body.bytes.len + end_of(batch).len;
}

void otlp_batch_clear(struct otlp_batch *batch)
{
	buf_clear(&batch->body.bytes);
	batch->body.records = 0;
}

/* A copy, as the buffers stay the batch's. */
static char *copy_of(evrec_str bytes)
{
	char *copy = mem_alloc(bytes.len + 1);

	if (copy != NULL && bytes.len != 0) {
		memcpy(copy, bytes.data, bytes.len);
	}
	return copy;
}

char *otlp_batch_finish(struct otlp_batch *batch, size_t *len)
{
	evrec_str body;
	char *copy;

	buf_put_str(&batch->body.bytes, end_of(batch));
	body = buf_str(&batch->body.bytes);
	copy = !batch->body.bytes.failed && (batch->gzip == NULL || gzip_compress(batch->gzip, body, &body))
	               ? copy_of(body)
	               : NULL;
	*len = body.len;
	otlp_batch_clear(batch);
	return copy;
}
