/*
 * traced.h - a broadcaster with a fake clock and a trace alone, and the replay of its file.
 */
#ifndef EVREC_UNIT_TRACED_H
#define EVREC_UNIT_TRACED_H

#include "stats_invariants.h"
#include "tmpdir.h"

#include "evrec_read.h"

#define MANY (64 << 20) /* bytes: more than any of these traces has */

struct traced {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	unsigned errors, drops;            /* how often on_error and on_drop were called */
	char error[256];                   /* the last message of on_error, which has the name "trace" */
	void (*told)(const char *message); /* called with each message of on_error; or NULL */
};

/* `correlator` is of evrec_broadcaster_start_trace. *t must stay where it is until traced_end, which frees what it has. */
void traced_begin_driven(struct traced *t, const char *path, uint64_t max_bytes,
                         const evrec_correlator_options *correlator, enum evrec_drive drive);
/* The same with EVREC_DRIVE_POLL. */
void traced_begin(struct traced *t, const char *path, uint64_t max_bytes, const evrec_correlator_options *correlator);
/* Shuts down without a wait. */
void traced_end(struct traced *t);

/* Records a Normal event about the Pod shop/web-<object>. */
void traced_record(struct traced *t, uint64_t object, const char *reason, const char *note);

/* Replays the file under the options; NULL: the defaults. Fills in `trace` and `result`. */
void traced_replay(const char *path, const evrec_correlator_options *options, evrec_replayed_trace *trace,
                   evrec_replayed_variant *result);

#endif
