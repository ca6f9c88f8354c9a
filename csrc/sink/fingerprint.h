/*
 * fingerprint.h - the options of a sink as hashes, to tell whether two sinks are configured alike, and if not, which
 * option differs. Holds no value of an option.
 */
#ifndef EVREC_FINGERPRINT_H
#define EVREC_FINGERPRINT_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define FINGERPRINT_MAX 56

struct fingerprint {
	size_t len;
	struct {
		const char *option; /* static */
		uint64_t hash;
	} options[FINGERPRINT_MAX];
};

/* fingerprint_mix mixes a further value into the hash of the option that was added last. */
void fingerprint_add(struct fingerprint *f, const char *option, evrec_str value);
void fingerprint_mix(struct fingerprint *f, evrec_str value);
void fingerprint_add_number(struct fingerprint *f, const char *option, int64_t value);
void fingerprint_add_double(struct fingerprint *f, const char *option, double value);
/*
 * The result does not depend on the order of pairs: each Lua state iterates a table in its own order. Keys are unique.
 */
void fingerprint_add_map(struct fingerprint *f, const char *option, const evrec_map *map);

/* The first option in which two fingerprints differ; NULL: they are equal. */
const char *fingerprint_difference(const struct fingerprint *a, const struct fingerprint *b);

/* The options of a correlator: its numbers, and which functions are set. */
void fingerprint_correlator(struct fingerprint *f, const evrec_correlator_options *options);
/* The options of a sink, beginning with its kind, "sink". */
void sink_fingerprint(const evrec_sink *sink, struct fingerprint *f);

#pragma GCC visibility pop

#endif
