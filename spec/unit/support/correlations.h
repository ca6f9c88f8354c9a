/* correlations.h - correlators, and events of pods for them. */
#ifndef EVREC_UNIT_CORRELATIONS_H
#define EVREC_UNIT_CORRELATIONS_H

#include "unit.h"

/* A Normal event of the pod default/`object` at `now`. It points to the strings. */
evrec_fields pod_event(const char *object, const char *reason, const char *message, int64_t now);

/* A correlator; fails the test if there is none. The caller owns it. */
evrec_correlator *correlator_with(const evrec_correlator_options *options);

/* Default options, but for a burst that no test exhausts. */
evrec_correlator_options unlimited_options(void);

/* Correlates such an event. The result is valid as evrec_correlator_correlate says. */
evrec_correlation correlate_pod_event(evrec_correlator *c, const char *object, const char *reason, const char *message,
                                      int64_t now);

#endif
