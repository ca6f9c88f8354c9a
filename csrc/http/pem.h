/*
 * pem.h - looks at certificates and keys in PEM form (RFC 7468), as far as can be told without a library for TLS. Pure.
 */
#ifndef EVREC_PEM_H
#define EVREC_PEM_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* The fault of one or several certificates: static words that follow the option's name; NULL: no fault was found. */
const char *pem_certificate_fault(evrec_str pem);
/* Likewise for a private key, among whatever else is in the file. */
const char *pem_key_fault(evrec_str pem);

#pragma GCC visibility pop

#endif
