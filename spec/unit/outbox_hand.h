/*
 * outbox_hand.h - an outbox driven by hand: time is a number here, and the books are looked at after every step.
 */
#ifndef EVREC_OUTBOX_HAND_H
#define EVREC_OUTBOX_HAND_H

#include "items.h"

#define S EVREC_SECOND

static const evrec_answer CREATED = { .status = 201 };
static const evrec_answer LOST = { .status = 0, .message = "connection reset" };
static const evrec_answer UNSENT = { .status = 0, .unsent = true, .message = "connection refused" };

static inline evrec_answer status(int code)
{
	return (evrec_answer){ .status = code };
}

static inline struct outbox *new_outbox(size_t max_pending)
{
	struct outbox *ob = items_outbox(max_pending);

	assert_non_null(ob);
	return ob;
}

static inline void end_outbox(struct outbox *ob)
{
	assert_equation(ob);
	outbox_free(ob);
	assert_int_equal(items_alive, 0);
}

/* Submits occurrence `count` of `id`, named "n<id>". */
static inline bool submit(struct outbox *ob, uint64_t id, unsigned count)
{
	bool ok = item_submit(ob, id, count);

	assert_equation(ob);
	return ok;
}

static inline struct entry *take(struct outbox *ob, int64_t now)
{
	struct entry *entry = outbox_take(ob, now);

	assert_equation(ob);
	return entry;
}

/* Takes the entry of `id` with this verb and count. */
static inline struct entry *take_this(struct outbox *ob, int64_t now, uint64_t id, enum verb verb, unsigned count)
{
	struct entry *entry = take(ob, now);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_int_equal(entry->verb, verb);
	assert_int_equal(((struct item *)entry->item)->count, count);
	return entry;
}

static inline void answer(struct outbox *ob, struct entry *entry, evrec_answer a, int64_t now)
{
	(void)outbox_answer(ob, entry, &a, now);
	assert_equation(ob);
}

static inline void collect_written(struct outbox *ob, uint64_t id, const char *name)
{
	struct entry *entry = outbox_collect(ob);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_false(entry->dropped);
	assert_null(entry->item);
	assert_string_equal(entry->name, name);
	outbox_recycle(ob, entry);
}

static inline void collect_dropped(struct outbox *ob, uint64_t id, enum evrec_cause cause, unsigned count)
{
	struct entry *entry = outbox_collect(ob);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_true(entry->dropped);
	assert_int_equal(entry->cause, cause);
	assert_int_equal(((struct item *)entry->item)->count, count);
	outbox_recycle(ob, entry);
}

static inline void assert_stats(struct outbox *ob, unsigned created, unsigned patched, unsigned coalesced,
                                unsigned pending)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(s.created, created);
	assert_int_equal(s.patched, patched);
	assert_int_equal(s.coalesced, coalesced);
	assert_int_equal(s.pending, pending);
}

static inline void assert_report(struct outbox *ob, const char *name, const char *message)
{
	struct outbox_report report;

	assert_true(outbox_next_report(ob, &report));
	assert_string_equal(report.name, name);
	assert_string_equal(report.message, message);
}

static inline void assert_no_report(struct outbox *ob)
{
	struct outbox_report report;

	assert_false(outbox_next_report(ob, &report));
}

#endif
