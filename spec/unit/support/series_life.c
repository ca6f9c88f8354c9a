#include "series_life.h"

#define S EVREC_SECOND

static void begin_change(void *ctx)
{
	(void)ctx;
}

static void observed(void *ctx, const struct observed *o, int64_t now)
{
	state_observed(((struct series_life *)ctx)->state, o, now);
}

static void changed(void *ctx, uint64_t handle)
{
	state_answered(((struct series_life *)ctx)->state, handle);
}

static void removed(void *ctx, evrec_str key, uint64_t hash, int64_t now)
{
	state_removed(((struct series_life *)ctx)->state, key, hash, now);
}

void series_life_begin(struct series_life *life, const evrec_series_options *options,
                       const evrec_correlator_options *limits)
{
	const evrec_series_options usual = series_options(10);

	series_setup(&life->f, options != NULL ? options : &usual, limits);
	life->file = (struct buf){ 0 };
	life->state = state_new_of_series(life->f.s);
	assert_non_null(life->state);
	life->watch = (struct series_watch){ begin_change, observed, changed, removed, begin_change, life };
	series_set_watch(life->f.s, &life->watch);
}

void series_life_end(struct series_life *life)
{
	series_teardown(&life->f);
	state_free(life->state);
	buf_free(&life->file);
}

void series_life_save_changes(struct series_life *life)
{
	state_begin_changes(life->state);
	do {
		(void)state_take_changes(life->state, 3, &life->file);
	} while (state_changes(life->state) != 0);
	assert_false(life->file.failed);
}

void series_life_save_all(struct series_life *life)
{
	uint64_t cursor = 0;

	buf_clear(&life->file);
	while (state_take_all(life->state, &cursor, 5, &life->file) != 0) {
	}
	assert_false(life->file.failed);
}

struct state_loaded series_life_go_on_with(struct series_life *life, const evrec_series_options *options,
                                           const evrec_correlator_options *limits, int64_t after)
{
	struct buf file = life->file;
	struct state_loaded loaded;

	life->file = (struct buf){ 0 };
	series_life_end(life);
	series_life_begin(life, options, limits);
	life->file = file;
	assert_true(state_load(life->state, buf_str(&file), T0 + after, 12 * 3600 * S, &loaded));
	assert_int_equal(loaded.valid_len, file.len);
	return loaded;
}

struct state_loaded series_life_go_on(struct series_life *life, int64_t after)
{
	return series_life_go_on_with(life, NULL, NULL, after);
}

uint64_t series_life_see_written(struct series_life *life, const char *object, unsigned n, int64_t after)
{
	uint64_t handle = 0;

	for (unsigned i = 0; i < n; i++) {
		handle = series_see(&life->f, object, "m", after)->handle;
	}
	series_settled(life->f.s, handle, n, 0);
	series_answered(life->f.s, handle, EVREC_STR(""), 0);
	return handle;
}
