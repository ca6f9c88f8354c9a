/*
 * retry_after.h - the Retry-After header (RFC 9110, 10.2.3). Pure: no I/O, no clock. Any thread.
 */
#ifndef EVREC_RETRY_AFTER_H
#define EVREC_RETRY_AFTER_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * The header's value, seconds or an HTTP date, as ns from `now`, which is wall-clock time: a year at most, 0 if the
 * value is neither or is past.
 */
int64_t retry_after_parse(evrec_str value, int64_t now);

#pragma GCC visibility pop

#endif
