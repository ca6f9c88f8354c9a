#include "checked_outbox.h"

const evrec_answer ANSWER_CREATED = { .status = 201 };

const evrec_answer ANSWER_LOST = { .status = 0, .message = "connection reset" };

const evrec_answer ANSWER_UNSENT = { .status = 0, .unsent = true, .message = "connection refused" };

evrec_answer answer_with(int code)
{
	return (evrec_answer){ .status = code };
}

struct outbox *checked_outbox(size_t max_pending)
{
	const evrec_limits limits = limits_without_age(max_pending);

	return checked_outbox_limited(&limits);
}

struct outbox *checked_outbox_limited(const evrec_limits *limits)
{
	struct outbox *ob = outbox_new(&fake_write_ops, limits, 1);

	assert_non_null(ob);
	return ob;
}

void checked_outbox_free(struct outbox *ob)
{
	outbox_check_equation(ob);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

bool checked_submit(struct outbox *ob, uint64_t id, unsigned count)
{
	bool ok = fake_write_submit(ob, id, count);

	outbox_check_equation(ob);
	return ok;
}

bool checked_submit_due(struct outbox *ob, uint64_t id, unsigned count, int64_t now, int64_t due)
{
	struct fake_write draft = { .count = count };
	const struct occurrence occurrence = {
		.id = id, .verb = count > 1 ? VERB_PATCH : VERB_CREATE, .now = now, .due = due, .draft = &draft
	};
	enum evrec_cause cause;
	bool ok;

	snprintf(draft.name, sizeof(draft.name), "n%u", (unsigned)id);
	ok = outbox_submit(ob, &occurrence, &cause);
	outbox_check_equation(ob);
	return ok;
}

struct entry *checked_take(struct outbox *ob, int64_t now)
{
	struct entry *entry = outbox_take(ob, now);

	outbox_check_equation(ob);
	return entry;
}

struct entry *take_expected(struct outbox *ob, int64_t now, uint64_t id, enum verb verb, unsigned count)
{
	struct entry *entry = checked_take(ob, now);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_int_equal(entry->verb, verb);
	assert_int_equal(((struct fake_write *)entry->item)->count, count);
	return entry;
}

void checked_answer(struct outbox *ob, struct entry *entry, evrec_answer a, int64_t now)
{
	answer_entry_as_kubernetes(ob, entry, &a, now);
	outbox_check_equation(ob);
}

void collect_written(struct outbox *ob, uint64_t id, const char *name)
{
	struct entry *entry = outbox_collect(ob, 1);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_false(entry->dropped);
	assert_null(entry->item);
	assert_string_equal(entry_name(entry), name);
	outbox_recycle(ob, entry);
}

void collect_dropped(struct outbox *ob, uint64_t id, enum evrec_cause cause, unsigned count)
{
	struct entry *entry = outbox_collect(ob, 1);

	assert_non_null(entry);
	assert_int_equal(entry->id, id);
	assert_true(entry->dropped);
	assert_int_equal(entry->cause, cause);
	assert_int_equal(((struct fake_write *)entry->item)->count, count);
	outbox_recycle(ob, entry);
}

void assert_counts(struct outbox *ob, unsigned created, unsigned patched, unsigned coalesced, unsigned pending)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(s.created, created);
	assert_int_equal(s.patched, patched);
	assert_int_equal(s.coalesced, coalesced);
	assert_int_equal(s.pending, pending);
}

void assert_counted(struct outbox *ob, unsigned counted, unsigned pending)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(s.counted, counted);
	assert_int_equal(s.pending, pending);
}

void assert_message(struct outbox *ob, const char *name, const char *text)
{
	struct outbox_message message;

	assert_true(outbox_next_message(ob, &message));
	assert_string_equal(message.name, name);
	assert_string_equal(message.message, text);
}

void assert_no_message(struct outbox *ob)
{
	struct outbox_message message;

	assert_false(outbox_next_message(ob, &message));
}

void assert_dropped(struct outbox *ob, enum evrec_cause cause, unsigned n)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(s.dropped[cause], n);
}

void checked_write(struct outbox *ob, int64_t now, unsigned count)
{
	struct entry *entry = checked_take(ob, now);

	assert_non_null(entry);
	assert_int_equal(((struct fake_write *)entry->item)->count, count);
	checked_answer(ob, entry, answer_with(200), now);
}
