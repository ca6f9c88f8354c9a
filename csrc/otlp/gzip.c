#include "otlp/gzip.h"

#include <limits.h>
#include <zlib.h>

#define LEVEL 1
#define WINDOW_BITS 15
#define GZIP 16 /* added to the window's bits: the gzip format instead of zlib's own */
#define MEMORY_LEVEL 8
#define STEP 16384 /* bytes by which the output grows at least */

struct gzip {
	z_stream stream;
	struct buf out;
};

static void *allocate(void *opaque, uInt items, uInt size)
{
	(void)opaque;
	return mem_zalloc((size_t)items * size);
}

static void release(void *opaque, void *block)
{
	(void)opaque;
	mem_free(block);
}

struct gzip *gzip_new(void)
{
	struct gzip *gzip = mem_zalloc(sizeof(*gzip));

	if (gzip == NULL) {
		return NULL;
	}
	gzip->stream.zalloc = allocate;
	gzip->stream.zfree = release;
	if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		mem_free(gzip);
		return NULL;
	}
	return gzip;
}

void gzip_free(struct gzip *gzip)
{
	if (gzip != NULL) {
		(void)deflateEnd(&gzip->stream);
		buf_free(&gzip->out);
		mem_free(gzip);
	}
}

bool gzip_compress(struct gzip *gzip, evrec_str bytes, evrec_str *compressed)
{
	z_stream *stream = &gzip->stream;
	struct buf *out = &gzip->out;
	int code = Z_OK;

	buf_clear(out);
	if (bytes.len > UINT_MAX || deflateReset(stream) != Z_OK) {
		return false;
	}
	stream->next_in = (z_const Bytef *)(uintptr_t)bytes.data;
	stream->avail_in = (uInt)bytes.len;
	while (code == Z_OK && buf_reserve(out, STEP)) {
		stream->next_out = (Bytef *)out->data + out->len;
		stream->avail_out = STEP;
		code = deflate(stream, Z_FINISH);
		out->len += STEP - stream->avail_out;
	}
	*compressed = buf_str(out);
	return code == Z_STREAM_END;
}
