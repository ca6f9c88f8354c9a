/*
 * tls_records.h - tells of each TLS record that libcurl receives, in the call in which libcurl reads it. Belongs to the
 * client's thread.
 *
 * OpenSSL calls a function for each record. If libcurl uses another TLS library, its trace does. For that libcurl makes
 * texts of all that it does: with a bearer token of 1,100 bytes they take 30,000 of 238,000 instructions of a write.
 */
#ifndef EVREC_TLS_RECORDS_H
#define EVREC_TLS_RECORDS_H

#include "http/curl.h"

#pragma GCC visibility push(hidden)

struct tls_records {
	void (*received)(void *ctx, size_t len); /* `len` bytes follow the record's head */
	void *ctx;
};

/* Of the connections that the handle `easy` opens, which `records` outlives. False: no memory. */
bool tls_records_watch(const struct tls_records *records, CURL *easy);

#pragma GCC visibility pop

#endif
