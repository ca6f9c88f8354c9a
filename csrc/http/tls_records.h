/*
 * tls_records.h - tells of each TLS record that libcurl receives, in the call in which libcurl reads it. Belongs to the
 * client's thread.
 *
 * OpenSSL calls a function for each record, if openssl.h finds it. Else libcurl's trace tells of them, if libcurl was
 * built with OpenSSL or a fork of it; but then libcurl makes texts of all that it does, which take 30,000 of 238,000
 * instructions of a write if the bearer token has 1,100 bytes. With GnuTLS nothing tells of them.
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
