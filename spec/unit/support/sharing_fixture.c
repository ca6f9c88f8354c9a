#include "sharing_fixture.h"

#include <unistd.h>

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct side *side = ctx;

	assert_non_null(event);
	side->drops++;
	(void)snprintf(side->why, sizeof(side->why), "%s", why);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct side *side = ctx;

	side->errors++;
	(void)snprintf(side->error, sizeof(side->error), "%s", message);
	(void)snprintf(side->error_name, sizeof(side->error_name), "%s", name);
}

evrec_broadcaster_options sharing_fixture_options(const struct sharing_fixture *f, size_t i, struct side *side)
{
	evrec_broadcaster_options options;

	(void)snprintf(side->name, sizeof(side->name), "%s-%zu", f->share, i);
	evrec_broadcaster_options_init(&options);
	options.share = str_from(f->share);
	options.name = str_from(side->name);
	options.on_drop = on_drop;
	options.on_error = on_error;
	options.ctx = side;
	return options;
}

static bool open_with(struct side *side, const evrec_broadcaster_options *options, const char *path,
                      const evrec_sink_options *common, unsigned burst)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_correlator_options correlator;
	evrec_sink *sink;

	evrec_correlator_options_init(&correlator);
	correlator.burst_size = burst;
	correlator.qps = 0;
	side->b = evrec_broadcaster_new(options, NULL);
	sink = evrec_sink_file(str_from(path), common, NULL);
	if (side->b != NULL && sink != NULL) {
		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, &correlator, NULL);
		side->r = evrec_recorder_new(side->b, &source, NULL);
	}
	evrec_sink_release(sink);
	return side->watch != NULL && side->r != NULL;
}

bool side_open_driven(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst,
                      enum evrec_drive drive)
{
	evrec_broadcaster_options own = *options;

	own.drive = drive;
	return open_with(side, &own, path, NULL, burst);
}

bool side_open_limited(struct side *side, const evrec_broadcaster_options *options, const char *path,
                       const evrec_sink_options *common)
{
	evrec_broadcaster_options own = *options;

	own.drive = EVREC_DRIVE_POLL;
	return side_open_with(side, &own, path, common);
}

bool side_open_with(struct side *side, const evrec_broadcaster_options *options, const char *path,
                    const evrec_sink_options *common)
{
	return open_with(side, options, path, common, 25);
}

bool side_open(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst)
{
	return side_open_driven(side, options, path, burst, EVREC_DRIVE_POLL);
}

void side_close(struct side *side)
{
	evrec_watch_free(side->watch);
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

int side_record(const struct side *side, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = str_from(note);
	return evrec_recorder_emit(side->r, &emit, NULL);
}

evrec_sink_stats side_stats(const struct side *side)
{
	evrec_sink_stats s = { .number = 0 };

	assert_true(evrec_broadcaster_get_sink_stats(side->b, 1, &s));
	return s;
}

void sharing_fixture_init(struct sharing_fixture *f)
{
	static unsigned number;

	*f = (struct sharing_fixture){ .share = "" };
	(void)snprintf(f->share, sizeof(f->share), "@evrec-sharing-%ld-%u", (long)getpid(), number++);
}

void sharing_fixture_open(struct sharing_fixture *f, const char *path, unsigned burst)
{
	sharing_fixture_init(f);
	for (size_t i = 0; i < 2; i++) {
		const evrec_broadcaster_options options = sharing_fixture_options(f, i, &f->sides[i]);

		assert_true(side_open(&f->sides[i], &options, path, burst));
		evrec_broadcaster_poll(f->sides[i].b);
	}
	sharing_fixture_poll(f, 4);
}

void sharing_fixture_poll(struct sharing_fixture *f, unsigned times)
{
	while (times-- > 0) {
		evrec_broadcaster_poll(f->sides[0].b);
		evrec_broadcaster_poll(f->sides[1].b);
	}
}

void sharing_fixture_close(struct sharing_fixture *f)
{
	side_close(&f->sides[1]);
	side_close(&f->sides[0]);
}
