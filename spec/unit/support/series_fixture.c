#include "series_fixture.h"

static void copy(char *to, size_t size, evrec_str s)
{
	(void)snprintf(to, size, "%.*s", (int)s.len, s.len == 0 ? "" : s.data);
}

static void on_told(void *ctx, const struct series_told *told)
{
	struct series_fixture *f = ctx;
	struct series_note *note = &f->told[f->told_len];

	assert_true(f->told_len < SERIES_TOLD_MAX);
	f->told_len++;
	*note = (struct series_note){ .handle = told->handle,
		                      .count = told->event->series_count,
		                      .event_time = told->event->event_time,
		                      .last = told->event->series_last,
		                      .evicted = told->evicted,
		                      .untold = told->untold,
		                      .due = told->due,
		                      .finishes = told->finishes };
	copy(note->object, sizeof(note->object), told->event->regarding.name);
	copy(note->name, sizeof(note->name), told->event->name);
	copy(note->note, sizeof(note->note), told->event->note);
	copy(note->state, sizeof(note->state), told->event->series_state);
}

evrec_series_options series_options(size_t max_series)
{
	return (evrec_series_options){ .refresh_interval = 1800 * EVREC_SECOND,
		                       .finish_time = 360 * EVREC_SECOND,
		                       .max_series = max_series };
}

void series_setup(struct series_fixture *f, const evrec_series_options *options, const evrec_correlator_options *limits)
{
	evrec_correlator_options defaults;

	evrec_correlator_options_init(&defaults);
	*f = (struct series_fixture){ .s = NULL };
	f->s = series_new(options, limits == NULL ? &defaults : limits, T0, on_told, f);
	assert_non_null(f->s);
}

void series_teardown(struct series_fixture *f)
{
	assert_int_equal(f->told_len, 0);
	series_free(f->s);
	keys_free(&f->keys);
}

struct observed *series_see_event(struct series_fixture *f, const evrec_fields *event, int64_t now)
{
	assert_true(keys_make(&f->keys, event));
	assert_int_equal(series_observe(f->s, event, &f->keys, now, &f->o), 0);
	return &f->o;
}

struct observed *series_see(struct series_fixture *f, const char *object, const char *note, int64_t after)
{
	evrec_fields event = pod_event(object, "R", note, T0 + after);

	return series_see_event(f, &event, T0 + after);
}

void series_check_told(struct series_fixture *f, const char *expected)
{
	char text[SERIES_TOLD_MAX * 64] = "";
	size_t i, len = 0;

	for (i = 0; i < f->told_len; i++) {
		const struct series_note *note = &f->told[i];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s %d", i == 0 ? "" : ", ", note->state,
		                        note->object, note->count);
	}
	assert_string_equal(text, expected);
	f->told_len = 0;
}
