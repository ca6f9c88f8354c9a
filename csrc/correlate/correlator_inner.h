/*
 * correlator_inner.h - a correlator, for the files that implement it.
 *
 *   correlator.c          its life, the server's answers, other processes, statistics
 *   correlator_observe.c  the way of an event
 */
#ifndef EVREC_CORRELATOR_INNER_H
#define EVREC_CORRELATOR_INNER_H

#include "correlate/aggregator.h"
#include "correlate/correlator.h"
#include "correlate/event_log.h"
#include "correlate/spam_filter.h"

#pragma GCC visibility push(hidden)

enum mode {
	IDLE,
	WATCHED, /* idle too, and has a watch */
	BUSY,    /* correlator_observe is running: a callback must not enter it again */
};

/* The fields that each event reads come first, so that they take few cache lines. */
struct evrec_correlator {
	enum mode mode;
	int64_t min_interval;                 /* ns; 0: none */
	const struct correlator_watch *watch; /* NULL: none */
	struct aggregator aggregator;
	struct spam_filter spam_filter;
	struct event_log event_log;
	evrec_correlator_stats stats;
	evrec_correlator_options options;
	struct buf message;    /* the message of the last aggregate */
	struct keys keys;      /* of the event that evrec_correlator_correlate was given last */
	struct key custom_key; /* the key that a callback chose last */
	struct buf custom;     /* the bytes of custom_key */
};

#pragma GCC visibility pop

#endif
