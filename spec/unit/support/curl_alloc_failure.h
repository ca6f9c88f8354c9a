/* curl_alloc_failure.h - libcurl's own allocations, which fail as alloc_failure.h says if a test wants it. */
#ifndef EVREC_UNIT_CURL_ALLOC_FAILURE_H
#define EVREC_UNIT_CURL_ALLOC_FAILURE_H

#include "alloc_failure.h"

/* They fail only while this is set; global, because libcurl's allocation functions have no context. */
extern bool curl_alloc_fails;

/* Begins the use of libcurl with these functions, in place of curl_global_init. Ended by curl_global_cleanup. */
void curl_alloc_failure_init(void);

#endif
