#include "recorder/kept_state.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "correlate/state.h"

struct kept_state {
	pthread_mutex_t lock;
	struct kept of;
	struct correlator_watch watch;
	struct series_watch series_watch;
	struct state *state;
	struct state_file *file;
	bool was_busy; /* of the driver: its last wait for the lock has failed */
};

/* ---- the driver's side ---- */

#define LOCK_TRIES 100
#define LOCK_PAUSE (EVREC_SECOND / 20000)

static bool lock_for_driver(struct kept_state *kept)
{
	const struct timespec pause = { 0, LOCK_PAUSE };

	for (int tries = 0; pthread_mutex_trylock(&kept->lock) != 0; tries++) {
		if (kept->was_busy || tries == LOCK_TRIES) {
			kept->was_busy = true;
			return false;
		}
		(void)nanosleep(&pause, NULL);
	}
	kept->was_busy = false;
	return true;
}

static bool take_changes(void *ctx, bool begin, size_t max, struct buf *out, size_t *left)
{
	struct kept_state *kept = ctx;

	if (!lock_for_driver(kept)) {
		return false;
	}
	if (begin) {
		state_begin_changes(kept->state);
	}
	(void)state_take_changes(kept->state, max, out);
	*left = state_changes(kept->state);
	(void)pthread_mutex_unlock(&kept->lock);
	return true;
}

static bool take_all(void *ctx, uint64_t *cursor, size_t max, struct buf *out, size_t *taken)
{
	struct kept_state *kept = ctx;

	if (!lock_for_driver(kept)) {
		return false;
	}
	*taken = state_take_all(kept->state, cursor, max, out);
	(void)pthread_mutex_unlock(&kept->lock);
	return true;
}

static void free_state(void *ctx)
{
	struct kept_state *kept = ctx;

	(void)pthread_mutex_destroy(&kept->lock);
	evrec_correlator_free(kept->of.correlator);
	series_free(kept->of.series);
	state_free(kept->state);
	mem_free(kept);
}

static const struct state_source source = { take_changes, take_all, free_state };

/* ---- the embedder's side ---- */

static void begin(void *ctx)
{
	(void)pthread_mutex_lock(&((struct kept_state *)ctx)->lock);
}

static void end(struct kept_state *kept)
{
	(void)pthread_mutex_unlock(&kept->lock);
	state_file_changed(kept->file);
}

static void observed(void *ctx, const struct observed *o, int64_t now)
{
	struct kept_state *kept = ctx;

	if (o != NULL) {
		state_observed(kept->state, o, now);
	}
	end(kept);
}

static void recovered(void *ctx, uint64_t handle, int64_t now)
{
	struct kept_state *kept = ctx;

	if (handle != 0) {
		state_recovered(kept->state, handle, now);
	}
	end(kept);
}

static void changed(void *ctx, uint64_t handle)
{
	struct kept_state *kept = ctx;

	state_answered(kept->state, handle);
	end(kept);
}

static void series_seen(void *ctx, const struct observed *o, int64_t now)
{
	state_observed(((struct kept_state *)ctx)->state, o, now);
}

static void series_changed(void *ctx, uint64_t handle)
{
	state_answered(((struct kept_state *)ctx)->state, handle);
}

static void series_removed(void *ctx, evrec_str key, uint64_t hash, int64_t now)
{
	state_removed(((struct kept_state *)ctx)->state, key, hash, now);
}

static void series_end(void *ctx)
{
	end(ctx);
}

static void watch(struct kept_state *kept)
{
	if (kept->of.series != NULL) {
		kept->series_watch =
			(struct series_watch){ begin, series_seen, series_changed, series_removed, series_end, kept };
		series_set_watch(kept->of.series, &kept->series_watch);
	} else {
		kept->watch = (struct correlator_watch){ begin, observed, recovered, changed, kept };
		correlator_set_watch(kept->of.correlator, &kept->watch);
	}
}

static void report(struct outbox *ob, const char *what, const char *reason)
{
	char message[sizeof(((struct outbox_message *)0)->message)];

	(void)snprintf(message, sizeof(message), "%s: %s", what, reason);
	outbox_report(ob, "state", message);
}

/* Reports the records of the file that were not taken over. */
static void report_loaded(evrec_str path, evrec_str records, const struct state_loaded *loaded, bool ok,
                          struct outbox *ob)
{
	char reason[256];
	const int shown = path.len < 160 ? (int)path.len : 160;

	if (!ok) {
		(void)snprintf(reason, sizeof(reason), "no memory for all of %.*s", shown, path.data);
	} else if (loaded->valid_len < records.len) {
		(void)snprintf(reason, sizeof(reason),
		               "%.*s is damaged, or its last write was cut off: the part before the damage is used",
		               shown, path.data);
	} else if (loaded->records == 0 && loaded->old != 0) {
		(void)snprintf(reason, sizeof(reason), "%.*s is too old: nothing in it was used in the last 12 h",
		               shown, path.data);
	} else {
		return;
	}
	report(ob, "not all counts of the last process were taken over", reason);
}

/* False: there is no file; or another owner has it, and `in_use` is not NULL. */
static bool load(struct kept_state *kept, evrec_str path, int64_t now, struct outbox *ob, bool *in_use)
{
	struct buf contents = { 0 };
	struct state_loaded loaded;
	enum state_opened opened;
	evrec_str records;
	evrec_error err;
	bool ok;

	opened = state_file_open(kept->file, &contents, &records, &err);
	if (opened == STATE_IN_USE && in_use != NULL) {
		*in_use = true;
		opened = STATE_REFUSED;
	} else if (opened == STATE_REFUSED || opened == STATE_IN_USE) {
		report(ob, "counts are not kept for the next process", err.message);
	} else if (opened == STATE_IGNORED) {
		report(ob, "no counts of the last process were taken over", err.message);
	} else {
		ok = state_load(kept->state, records, now, KEPT_STATE_MAX_AGE, &loaded);
		report_loaded(path, records, &loaded, ok, ob);
	}
	buf_free(&contents);
	return opened != STATE_REFUSED;
}

struct state_file *kept_state_open(evrec_str path, evrec_str folder)
{
	struct state_file *file = state_file_new(path, STATE_VERSION);

	if (file != NULL && folder.len != 0 && !state_file_set_folder(file, folder)) {
		state_file_free(file);
		return NULL;
	}
	if (file != NULL) {
		state_file_open_ahead(file);
	}
	return file;
}

struct state_file *kept_state_new(evrec_str path, struct state_file *file, const struct kept *of, int64_t now,
                                  struct outbox *ob, bool *in_use)
{
	struct kept_state *kept = mem_zalloc(sizeof(*kept));
	struct state *state = of->series != NULL ? state_new_of_series(of->series) : state_new(of->correlator);

	if (kept != NULL && state != NULL && file != NULL) {
		kept->state = state;
		kept->file = file;
		if (load(kept, path, now, ob, in_use)) {
			(void)pthread_mutex_init(&kept->lock, NULL);
			kept->of = *of;
			state_file_use(file, &source, kept);
			watch(kept);
			return file;
		}
	} else {
		report(ob, "counts are not kept for the next process", "no memory");
	}
	state_file_free(file);
	state_free(state);
	mem_free(kept);
	return NULL;
}
