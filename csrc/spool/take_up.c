#include "spool/spooler_inner.h"

/* Rows that were read, until the file has committed their marks. */
struct batch {
	const struct spooler *sp;
	const struct outbox *ob;
	struct spool_moment now;
	size_t room; /* bytes */
	struct outbox_saved saved[SPOOL_BATCH];
	size_t len;     /* of `saved` */
	size_t read;    /* rows, with those that cannot be restored */
	int64_t last;   /* the number of the last one */
	bool damaged;   /* a row could not be parsed, for the first time */
	bool too_large; /* a row is larger than the whole outbox may be, likewise */
	bool full;      /* there is no room for the next row now */
};

/* Of the item, which its text has in whole seconds. */
static void set_time(const struct spool_codec *codec, void *item, int64_t time)
{
	struct spool_changes changes;

	codec->get_changes(item, NULL, &changes);
	changes.last = time;
	codec->set_changes(item, &changes);
}

static void parse(struct batch *batch, const struct spool_row *row, struct outbox_saved *saved)
{
	const struct spool_moment *now = &batch->now;

	/* If the wall clock was set back, the age is 0. */
	*saved = (struct outbox_saved){
		.row = row->seq,
		.verb = row->verb,
		.count = row->count,
		.maybe_received = row->maybe_received,
		.last = spool_moment_before(now->monotonic, time_since(now->wall, row->last)),
	};
	/* The outbox counts by these two, so they are checked. */
	if (row->count != 0 && row->maybe_received <= row->count) {
		saved->item = batch->sp->codec.parse(row->item, &saved->important);
	}
	if (saved->item != NULL) {
		saved->event = batch->sp->codec.event_number(saved->item);
		if (row->time != EVREC_UNSET) {
			set_time(&batch->sp->codec, saved->item, row->time);
		}
	}
}

static bool read_row(void *ctx, const struct spool_row *row)
{
	struct batch *batch = ctx;
	struct outbox_saved *saved = &batch->saved[batch->len];
	const bool is_new = row->seq > batch->sp->reported;
	size_t bytes;

	parse(batch, row, saved);
	bytes = saved->item == NULL ? 0 : outbox_item_bytes(batch->ob, saved->item);
	if (saved->item == NULL) {
		batch->damaged = batch->damaged || is_new;
	} else if (bytes > outbox_max_bytes(batch->ob)) {
		batch->too_large = batch->too_large || is_new;
		outbox_discard(batch->ob, saved->item);
	} else if (bytes > batch->room) {
		batch->full = true;
		outbox_discard(batch->ob, saved->item);
		return false;
	} else {
		batch->room -= bytes;
		batch->len++;
	}
	batch->read++;
	batch->last = row->seq;
	return true;
}

static bool read_batch(struct spooler *sp, size_t max, struct batch *batch, evrec_error *err)
{
	bool ok = spool_begin(sp->found, err) &&
	          spool_read(sp->found, sp->cursor, sp->until, max, read_row, batch, err) &&
	          spool_commit(sp->found, err);

	if (!ok) {
		spool_rollback(sp->found);
	}
	return ok;
}

static struct batch *batch_new(const struct spooler *sp, const struct outbox *ob, size_t bytes,
                               const evrec_clock *clock)
{
	struct batch *batch = mem_zalloc(sizeof(*batch));

	if (batch != NULL) {
		batch->sp = sp;
		batch->ob = ob;
		batch->now = spool_moment_now(clock);
		batch->room = bytes;
	}
	return batch;
}

static void discard(struct outbox *ob, struct batch *batch, size_t from)
{
	for (size_t i = from; i < batch->len; i++) {
		outbox_discard(ob, batch->saved[i].item);
	}
	batch->len = from;
}

/* Rows from `from` on were marked as sent when they were read, but will not be sent before they are read again. */
static void unmark(struct spooler *sp, const struct batch *batch, size_t from)
{
	bool ok = spool_begin(sp->found, NULL);

	for (size_t i = from; ok && i < batch->len; i++) {
		ok = batch->saved[i].maybe_received != 0 || spool_unmark(sp->found, batch->saved[i].row, NULL);
	}
	/* A superfluous mark does less harm than a missing one. */
	if (!ok || !spool_commit(sp->found, NULL)) {
		spool_rollback(sp->found);
	}
}

/* False: the outbox refused a row, which is the next one to be read. */
static bool restore(struct spooler *sp, struct outbox *ob, struct batch *batch)
{
	size_t n = 0;

	while (n < batch->len && outbox_restore(ob, &batch->saved[n])) {
		n++;
	}
	if (n == batch->len) {
		sp->cursor = batch->read == 0 ? sp->cursor : batch->last;
		return true;
	}
	sp->cursor = batch->saved[n].row - 1;
	unmark(sp, batch, n);
	/* The outbox has freed the item that it refused. */
	discard(ob, batch, n + 1);
	return false;
}

static void report_faults(struct spooler *sp, struct outbox *ob, const struct batch *batch)
{
	if (batch->damaged) {
		outbox_report(ob, "spool", "an event in the spool could not be read, and stays there");
	}
	if (batch->too_large) {
		outbox_report(ob, "spool", "an event in the spool is larger than max_pending_bytes, and stays there");
	}
	if (batch->read != 0 && batch->last > sp->reported) {
		sp->reported = batch->last;
	}
}

bool spooler_take_up(struct spooler *sp, struct outbox *ob, const struct outbox_rows *rows, const evrec_clock *clock)
{
	struct batch *batch = batch_new(sp, ob, rows->room_bytes, clock);
	size_t max = rows->room < spooler_batch(sp) ? rows->room : spooler_batch(sp);
	evrec_error err = { 0, "no memory" };
	bool ok = batch != NULL && read_batch(sp, max, batch, &err);
	bool restored = true, more = false;

	if (ok) {
		more = batch->full || batch->read == max;
		sp->refused_room = batch->full && batch->read == 0 ? rows->room_bytes : SIZE_MAX;
		restored = restore(sp, ob, batch) && sp->refused_room == SIZE_MAX;
		report_faults(sp, ob, batch);
	} else {
		spooler_report(ob, "no event is taken up from the spool", &err);
	}
	if (batch != NULL && !ok) {
		discard(ob, batch, 0);
	}
	mem_free(batch);
	if (!ok) {
		/* A flush does not wait for a full disk, or for memory. */
		outbox_expect(ob, false);
		sp->read = spool_is_damaged(sp->found);
		return sp->read;
	}
	sp->read = restored && !more;
	return restored;
}
