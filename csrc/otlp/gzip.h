/*
 * gzip.h - bodies compressed by zlib, whose memory comes from evrec's allocator. zlib has no locks and no state but the
 * stream's, so it needs no care in a fork. A compressor is for one thread at a time.
 */
#ifndef EVREC_OTLP_GZIP_H
#define EVREC_OTLP_GZIP_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct gzip;

struct gzip *gzip_new(void);       /* with 268 KB of memory. NULL: no memory */
void gzip_free(struct gzip *gzip); /* NULL is fine */

/* The bytes as one member of the gzip format (RFC 1952), borrowed until the next call. False: no memory. */
bool gzip_compress(struct gzip *gzip, evrec_str bytes, evrec_str *compressed);

#pragma GCC visibility pop

#endif
