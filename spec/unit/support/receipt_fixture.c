#include "receipt_fixture.h"

#include "correlations.h"

static void answer_any(void *ctx, const evrec_event *event, evrec_answer *out)
{
	static const int statuses[] = { 201, 201, 201, 200, 503, 429, 422, 404, 409, 403, 0, 0 };
	const evrec_fields *fields = evrec_event_fields(event);
	struct receipt_fixture *f = ctx;

	f->last_count = fields->series_count > fields->count ? fields->series_count : fields->count;
	(void)snprintf(f->last_name, sizeof(f->last_name), "%.*s", (int)fields->name.len, fields->name.data);
	out->status = f->status;
	out->unsent = f->status == 0;
	if (f->random != NULL) {
		out->status = statuses[unit_random(f->random) % 12];
		out->unsent = unit_random(f->random) % 2 == 0;
	}
}

static void answer(void *ctx, const evrec_event *event, evrec_answer *out)
{
	((struct receipt_fixture *)ctx)->creates++;
	answer_any(ctx, event, out);
}

static void answer_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *out)
{
	(void)patch;
	answer_any(ctx, event, out);
}

static void on_dropped(void *ctx, const struct pipeline_drop *drop)
{
	(void)ctx;
	assert_true(drop->count != 0);
}

static void on_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event)
{
	(void)ctx;
	(void)pipeline;
	(void)event;
}

static void on_error(void *ctx, const char *message, const char *name, const char *sink)
{
	struct receipt_fixture *f = ctx;

	(void)name;
	(void)sink;
	(void)snprintf(f->error, sizeof(f->error), "%s", message);
}

static void on_settled(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *settled)
{
	struct receipt_fixture *f = ctx;
	unsigned *open = &f->open[settled->receipt.source][settled->receipt.node];

	assert_ptr_equal(pipeline, f->pipeline);
	assert_in_range(settled->n, 1, *open);
	*open -= settled->n;
	*(settled->as == SETTLED_DROPPED ? &f->dropped[settled->cause] : &f->settled[settled->as]) += settled->n;
}

evrec_sink_options receipt_sink_options(void)
{
	evrec_sink_options options;

	evrec_sink_options_init(&options);
	return options;
}

void receipt_fixture_open(struct receipt_fixture *f, const evrec_sink_options *options,
                          const evrec_correlator_options *correlator)
{
	static const evrec_sink_ops ops = { .create = answer, .patch = answer_patch };
	evrec_sink *sink = evrec_sink_new(&ops, f, options, NULL);

	f->clock = evrec_clock_fake(T0);
	f->listener.dropped = on_dropped;
	f->listener.series = on_series;
	f->listener.error = on_error;
	f->listener.settled = on_settled;
	f->listener.ctx = f;
	if (sink != NULL && f->clock != NULL) {
		f->pipeline = pipeline_new(sink,
		                           &(struct pipeline_options){
						   .correlator = correlator,
						   .clock = f->clock,
						   .listener = &f->listener,
						   .max_message_bytes = 1024,
						   .drive = EVREC_DRIVE_AUTO,
					   },
		                           NULL);
	}
	evrec_sink_release(sink);
}

void receipt_record(struct receipt_fixture *f, const char *object, const char *note, struct receipt_id receipt)
{
	evrec_fields event = pod_event(object, "R", note, evrec_clock_now(f->clock));
	struct keys *keys;

	event.controller = f->controller != NULL ? str_from(f->controller) : event.controller;
	keys = keys_make(&f->keys, &event) ? &f->keys : NULL;
	f->open[receipt.source][receipt.node]++;
	assert_true(pipeline_record_for(f->pipeline, &event, keys, evrec_clock_now(f->clock), &receipt, NULL, false));
}

void receipt_advance(struct receipt_fixture *f, int64_t ns)
{
	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + ns);
	pipeline_poll(f->pipeline, INT64_MAX);
}

unsigned receipt_open(const struct receipt_fixture *f)
{
	unsigned n = 0;

	for (size_t i = 0; i < RECEIPT_SOURCES; i++) {
		for (size_t j = 0; j < RECEIPT_NODES; j++) {
			n += f->open[i][j];
		}
	}
	return n;
}

void receipt_end(struct receipt_fixture *f)
{
	const struct receipt_id receipt = { 0, 0 };
	const evrec_fields event = pod_event("late", "R", "m", T0);
	evrec_sink_stats s;
	uint64_t early;

	pipeline_end(f->pipeline);
	/* A server that does not take the writes is waited for in vain. */
	pipeline_join(f->pipeline,
	              unit_mono() + (f->status / 100 == 2 && f->random == NULL ? SOON : EVREC_SECOND / 50));
	assert_false(pipeline_record_for(f->pipeline, &event, NULL, T0, &receipt, NULL, false));
	assert_int_equal(receipt_open(f), 0);
	pipeline_get_stats(f->pipeline, &s);
	/* Occurrences that were in the spool first are settled as spooled, even if they were written or dropped then. */
	early = f->settled[SETTLED_SPOOLED] - s.spooled;
	assert_true(f->settled[SETTLED_SPOOLED] >= s.spooled);
	early -= s.created + s.patched + s.coalesced - f->settled[SETTLED_WRITTEN];
	assert_true(f->settled[SETTLED_WRITTEN] <= s.created + s.patched + s.coalesced);
	assert_int_equal(f->settled[SETTLED_RATE_LIMITED], s.rate_limited);
	for (int i = 0; i < EVREC_CAUSES; i++) {
		assert_true(f->dropped[i] <= s.dropped[i]);
		early -= s.dropped[i] - f->dropped[i];
	}
	assert_int_equal(early, 0);
}

void receipt_fixture_free(struct receipt_fixture *f)
{
	if (f->pipeline != NULL) {
		pipeline_free(f->pipeline);
	}
	keys_free(&f->keys);
	evrec_clock_release(f->clock);
}
