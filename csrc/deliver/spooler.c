#include "deliver/spooler.h"

#include "base/clock.h"
#include "deliver/spool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Rows in one transaction: a bound on what is in memory twice, and on how long a round of the driver takes. */
#define BATCH 256
/* So many answered ones are forgotten at once, or fewer where no others are under way. */
#define FORGET_AT 64

struct spooler {
	struct spool *spool;
	struct spool_codec codec;
	bool asked;     /* for the file, whatever came of it */
	int64_t cursor; /* the last row taken up */
};

/* ---- forks ---- */

/* Threads that are at a file; and whether a fork has left one behind, and with it locks of SQLite that stay locked. */
static atomic_uint at_work;
static atomic_bool left_behind;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forked(void)
{
	if (atomic_exchange(&at_work, 0) != 0) {
		atomic_store(&left_behind, true);
	}
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

/* ---- life ---- */

struct spooler *spooler_new(evrec_str path, const struct spool_codec *codec)
{
	struct spooler *sp = mem_zalloc(sizeof(*sp));

	if (sp == NULL) {
		return NULL;
	}
	(void)pthread_once(&once, watch_forks);
	sp->codec = *codec;
	sp->spool = spool_new(path);
	if (sp->spool == NULL) {
		mem_free(sp);
		return NULL;
	}
	return sp;
}

void spooler_free(struct spooler *sp)
{
	if (sp != NULL) {
		spool_free(sp->spool);
		mem_free(sp);
	}
}

static void report(struct outbox *ob, const char *what, const evrec_error *err)
{
	char message[sizeof(((struct outbox_report *)0)->message)];

	(void)snprintf(message, sizeof(message), "%s: %s", what, err->message);
	outbox_report(ob, "spool", message);
}

/* An outbox tells time by the one, the next process by the other. */
struct moment {
	int64_t monotonic, wall;
};

static struct moment moment_now(const evrec_clock *clock)
{
	return (struct moment){ clock_monotonic(clock), evrec_clock_now(clock) };
}

static int64_t before(int64_t now, int64_t age)
{
	int64_t then;

	return __builtin_sub_overflow(now, age, &then) ? INT64_MIN : then;
}

/* What was read of one batch, until it is certain that the file took note of it. */
struct batch {
	const struct spooler *sp;
	const struct outbox *ob;
	struct moment now;
	size_t room; /* bytes */
	struct outbox_saved saved[BATCH];
	size_t len;  /* of what can be restored */
	size_t read; /* of all */
	int64_t last;
	bool damaged, too_large; /* one that is; one that no room will ever be found for */
	bool full;               /* another one is for the next time */
};

static void thaw(struct batch *batch, const struct spool_row *row, struct outbox_saved *saved)
{
	const struct moment *now = &batch->now;

	/* A clock on the wall that was set back makes nothing older. */
	*saved = (struct outbox_saved){
		.row = row->seq,
		.verb = row->verb,
		.count = row->count,
		.arrived = row->arrived,
		.last = before(now->monotonic, time_since(now->wall, row->last)),
	};
	/* What was written elsewhere, or damaged: the outbox counts by these. */
	if (row->count != 0 && row->arrived <= row->count) {
		saved->item = batch->sp->codec.thaw(row->item, &saved->important);
	}
}

static bool read_row(void *ctx, const struct spool_row *row)
{
	struct batch *batch = ctx;
	struct outbox_saved *saved = &batch->saved[batch->len];
	size_t bytes;

	thaw(batch, row, saved);
	bytes = saved->item == NULL ? 0 : outbox_item_bytes(batch->ob, saved->item);
	if (saved->item == NULL) {
		batch->damaged = true;
	} else if (bytes > outbox_max_bytes(batch->ob)) {
		batch->too_large = true;
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

static bool read_batch(struct spooler *sp, size_t room, struct batch *batch, evrec_error *err)
{
	bool ok = spool_begin(sp->spool, err) && spool_read(sp->spool, sp->cursor, room, read_row, batch, err) &&
	          spool_commit(sp->spool, err);

	if (!ok) {
		spool_rollback(sp->spool);
	}
	return ok;
}

static struct batch *batch_new(const struct spooler *sp, const struct outbox *ob, size_t bytes, evrec_clock *clock)
{
	struct batch *batch = mem_zalloc(sizeof(*batch));

	if (batch != NULL) {
		batch->sp = sp;
		batch->ob = ob;
		batch->now = moment_now(clock);
		batch->room = bytes;
	}
	return batch;
}

static void restore(struct spooler *sp, struct outbox *ob, struct batch *batch, bool ok)
{
	for (size_t i = 0; i < batch->len; i++) {
		outbox_restore(ob, &batch->saved[i], ok);
	}
	if (ok && batch->damaged) {
		outbox_report(ob, "spool", "an event in the spool could not be read, and stays there");
	}
	if (ok && batch->too_large) {
		outbox_report(ob, "spool", "an event in the spool is larger than max_pending_bytes, and stays there");
	}
	if (ok && batch->read != 0) {
		sp->cursor = batch->last;
	}
}

static void take_up(struct spooler *sp, struct outbox *ob, const struct outbox_rows *rows, evrec_clock *clock)
{
	struct batch *batch = batch_new(sp, ob, rows->room_bytes, clock);
	size_t max = rows->room < BATCH ? rows->room : BATCH;
	evrec_error err = { 0, "no memory" };
	bool ok = batch != NULL && read_batch(sp, max, batch, &err);
	bool more = ok && (batch->full || batch->read == max);

	if (!ok) {
		report(ob, "nothing is taken up from the spool", &err);
	}
	if (batch != NULL) {
		restore(sp, ob, batch, ok);
		mem_free(batch);
	}
	if (!more) {
		outbox_expect(ob, false);
	}
}

/* Within a transaction, or as one. */
static bool forget(struct spooler *sp, struct outbox *ob, evrec_error *err)
{
	int64_t rows[BATCH];
	bool ok = true;
	size_t n;

	while (ok && (n = outbox_take_answered_rows(ob, rows, BATCH)) != 0) {
		for (size_t i = 0; ok && i < n; i++) {
			ok = spool_forget(sp->spool, rows[i], err);
		}
	}
	return ok;
}

static void forget_answered(struct spooler *sp, struct outbox *ob)
{
	evrec_error err;
	bool ok = spool_begin(sp->spool, &err) && forget(sp, ob, &err) && spool_commit(sp->spool, &err);

	if (!ok) {
		spool_rollback(sp->spool);
		report(ob, "what was written stays in the spool, to be written again", &err);
	}
}

static void open_spool(struct spooler *sp, struct outbox *ob, const char *what)
{
	evrec_error err;
	bool ok = !atomic_load(&left_behind);

	sp->asked = true;
	if (!ok) {
		(void)error_set(&err, EVREC_ESYSTEM, "this process was forked while its parent was at a spool");
	} else {
		ok = spool_open(sp->spool, &err);
	}
	if (!ok) {
		report(ob, what, &err);
	}
}

static void tend(struct spooler *sp, struct outbox *ob, evrec_clock *clock)
{
	struct outbox_rows rows;

	if (!sp->asked) {
		open_spool(sp, ob, "going on without the spool");
	}
	if (!spool_is_open(sp->spool)) {
		outbox_expect(ob, false);
		return;
	}
	outbox_get_rows(ob, &rows);
	if (rows.answered >= FORGET_AT || (rows.answered != 0 && rows.waiting == 0)) {
		forget_answered(sp, ob);
	}
	if (rows.room != 0) {
		take_up(sp, ob, &rows, clock);
	}
}

void spooler_tend(struct spooler *sp, struct outbox *ob, evrec_clock *clock)
{
	atomic_fetch_add(&at_work, 1);
	tend(sp, ob, clock);
	atomic_fetch_sub(&at_work, 1);
}

static bool put(struct spooler *sp, const struct entry *entry, const struct moment *now, struct buf *text,
                evrec_error *err)
{
	struct spool_row row = {
		.seq = entry->row,
		.verb = entry->verb,
		.count = entry->count,
		.arrived = entry->arrived,
		.last = before(now->wall, time_since(now->monotonic, entry->last)),
	};

	buf_clear(text);
	if (!sp->codec.freeze(entry->item, text)) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	row.item = buf_str(text);
	return spool_put(sp->spool, &row, err);
}

static bool put_all(struct spooler *sp, struct outbox *ob, evrec_clock *clock, evrec_error *err)
{
	const struct moment now = moment_now(clock);
	struct buf text = { 0 };
	const struct entry *entry = NULL;
	bool ok = spool_begin(sp->spool, err) && forget(sp, ob, err);

	while (ok && (entry = outbox_next_left(ob, entry)) != NULL) {
		ok = put(sp, entry, &now, &text, err);
	}
	ok = ok && spool_commit(sp->spool, err);
	buf_free(&text);
	return ok;
}

void spooler_rest(struct spooler *sp, struct outbox *ob, evrec_clock *clock)
{
	struct outbox_rows rows;
	evrec_error err;

	atomic_fetch_add(&at_work, 1);
	outbox_leave_all(ob);
	outbox_get_rows(ob, &rows);
	/* One that was in use at the beginning may be free by now. */
	if (rows.left != 0 && !spool_is_open(sp->spool)) {
		open_spool(sp, ob, "what is left is not spooled");
	}
	if (spool_is_open(sp->spool)) {
		if (rows.left == 0 && rows.answered != 0) {
			forget_answered(sp, ob);
		} else if (rows.left != 0 && put_all(sp, ob, clock, &err)) {
			outbox_spooled(ob);
		} else if (rows.left != 0) {
			spool_rollback(sp->spool);
			report(ob, "what is left is not spooled", &err);
		}
	}
	spool_close(sp->spool);
	atomic_fetch_sub(&at_work, 1);
}
