/* pem.h - checks the form of certificates and keys in PEM (RFC 7468), without a TLS library. Pure. */
#ifndef EVREC_PEM_H
#define EVREC_PEM_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* The fault of one or several certificates: static words that follow the option's name; NULL: no fault was found. */
const char *pem_certificate_fault(evrec_str pem);
/* Likewise for a private key; the file may have other parts. */
const char *pem_key_fault(evrec_str pem);

#pragma GCC visibility pop

#endif
