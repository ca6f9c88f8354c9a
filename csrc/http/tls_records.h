/*
 * tls_records.h - calls a function for each TLS record that libcurl receives, inside the call in which libcurl reads
 * it. Belongs to the client's thread.
 *
 * OpenSSL's message callback reports each record, if openssl.h finds OpenSSL. Else libcurl's debug callback reports
 * them, if libcurl was built with OpenSSL or a fork of it; but then libcurl formats messages about each of its actions,
 * which take 30,000 of 238,000 instructions of a write if the bearer token has 1,100 bytes. With GnuTLS there are no
 * reports.
 */
#ifndef EVREC_TLS_RECORDS_H
#define EVREC_TLS_RECORDS_H

#include "http/curl.h"

#pragma GCC visibility push(hidden)

struct tls_records {
	void (*received)(void *ctx, size_t len); /* `len` bytes follow the record's head */
	void *ctx;
};

/* Watches the connections that the handle `easy` opens, which `records` outlives. False: no memory. */
bool tls_records_watch(const struct tls_records *records, CURL *easy);

#pragma GCC visibility pop

#endif
