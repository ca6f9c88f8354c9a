/*
 * cluster.h - the readers of an API server's events (cluster_reader.c), which cluster.c opens.
 */
#ifndef EVREC_READ_CLUSTER_H
#define EVREC_READ_CLUSTER_H

#include "read/source.h"

#pragma GCC visibility push(hidden)

/* `sink` lives as long as the reader. NULL and *err. */
evrec_reader *cluster_reader_open(const evrec_sink *sink, const struct filter *filter, bool watch, evrec_error *err);

#pragma GCC visibility pop

#endif
