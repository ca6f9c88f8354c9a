/*
 * checked_outbox.h - an outbox of fake writes that a test takes step by step. `now` is a number; after every step the
 * equation of its counters is checked.
 */
#ifndef EVREC_UNIT_CHECKED_OUTBOX_H
#define EVREC_UNIT_CHECKED_OUTBOX_H

#include "fake_write.h"

#define S EVREC_SECOND

extern const evrec_answer ANSWER_CREATED; /* 201 */
extern const evrec_answer ANSWER_LOST;    /* none, and the request may have been received */
extern const evrec_answer ANSWER_UNSENT;  /* none, and the request was not sent */

/* An answer with this HTTP status and no message. */
evrec_answer answer_with(int status);

/* A new outbox, or a failed test. Free it with checked_outbox_free, which also checks that no fake write is left. */
struct outbox *checked_outbox(size_t max_pending);
struct outbox *checked_outbox_limited(const evrec_limits *limits);
void checked_outbox_free(struct outbox *ob);

/* fake_write_submit, outbox_take and outbox_answer, with the check. */
bool checked_submit(struct outbox *ob, uint64_t id, unsigned count);
/* Likewise, at the time `now`, and deferred until `due` unless that is 0. */
bool checked_submit_due(struct outbox *ob, uint64_t id, unsigned count, int64_t now, int64_t due);
struct entry *checked_take(struct outbox *ob, int64_t now);
void checked_answer(struct outbox *ob, struct entry *entry, evrec_answer a, int64_t now);

/* Takes an entry, which must be that of `id` with this verb and count. */
struct entry *take_expected(struct outbox *ob, int64_t now, uint64_t id, enum verb verb, unsigned count);

/* Takes an entry, which must have this count, and writes it: the answer is 200. */
void checked_write(struct outbox *ob, int64_t now, unsigned count);

/* Collects and recycles an entry, which must have been written under `name`, or dropped for `cause`. */
void collect_written(struct outbox *ob, uint64_t id, const char *name);
void collect_dropped(struct outbox *ob, uint64_t id, enum evrec_cause cause, unsigned count);

void assert_counts(struct outbox *ob, unsigned created, unsigned patched, unsigned coalesced, unsigned pending);
/* How many occurrences are deferred, and how many are pending. */
void assert_counted(struct outbox *ob, unsigned counted, unsigned pending);
/* How many occurrences were dropped for this cause. */
void assert_dropped(struct outbox *ob, enum evrec_cause cause, unsigned n);

/* The outbox's next message has exactly this name and text, or there is none. */
void assert_message(struct outbox *ob, const char *name, const char *text);
void assert_no_message(struct outbox *ob);

#endif
