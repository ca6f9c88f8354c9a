#include "correlator_life.h"

void correlator_life_begin(struct correlator_life *life, const evrec_correlator_options *options)
{
	*life = (struct correlator_life){ .c = correlator_with(options) };
	life->state = state_new(life->c);
	assert_non_null(life->state);
}

void correlator_life_end(struct correlator_life *life)
{
	state_free(life->state);
	evrec_correlator_free(life->c);
	keys_free(&life->keys);
	buf_free(&life->file);
}

struct observed correlator_life_observe(struct correlator_life *life, const evrec_fields *event, int64_t now)
{
	struct observed o;

	assert_true(keys_make(&life->keys, event));
	assert_int_equal(correlator_observe(life->c, event, &life->keys, now, NULL, &o), 0);
	state_observed(life->state, &o, now);
	return o;
}

struct observed correlator_life_observe_pod(struct correlator_life *life, const char *object, const char *message,
                                            int64_t now)
{
	static evrec_fields event;

	event = pod_event(object, "R", message, now);
	return correlator_life_observe(life, &event, now);
}

void correlator_life_save_changes(struct correlator_life *life)
{
	state_begin_changes(life->state);
	while (state_take_changes(life->state, 3, &life->file) != 0) {
	}
	assert_false(life->file.failed);
	assert_int_equal(state_changes(life->state), 0);
}

void correlator_life_save_all(struct correlator_life *life)
{
	uint64_t cursor = 0;

	buf_clear(&life->file);
	while (state_take_all(life->state, &cursor, 5, &life->file) != 0) {
	}
	assert_false(life->file.failed);
}

struct state_loaded correlator_life_next(struct correlator_life *life, const evrec_correlator_options *options,
                                         size_t len, int64_t now)
{
	struct correlator_life next;
	struct state_loaded loaded;

	correlator_life_begin(&next, options);
	assert_true(state_load(next.state, (evrec_str){ life->file.data, len }, now, 3600 * EVREC_SECOND, &loaded));
	correlator_life_end(life);
	*life = next;
	return loaded;
}
