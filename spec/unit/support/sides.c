#include "sides.h"

#include <unistd.h>

const evrec_reference sides_pod = { .kind = { "Pod", 3 }, .name = { "p", 1 }, .ns = { "n", 1 } };

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct side *side = ctx;

	(void)event;
	(void)why;
	if (side->explains) {
		side->explains = false;
		side->inner = evrec_explanation_new(side->b, NULL, SIDES_LONG, &side->inner_err);
	}
}

bool sides_open_one(struct side *side, const char *share, const char *name, enum evrec_drive drive, const char *path)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_sink *sink;

	*side = (struct side){ .b = NULL };
	evrec_broadcaster_options_init(&options);
	options.share = str_from(share);
	options.name = str_from(name);
	options.drive = drive;
	options.on_drop = on_drop;
	options.ctx = side;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 2;
	correlator.qps = 0;
	side->b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_file(str_from(path), NULL, NULL);
	if (side->b != NULL && sink != NULL) {
		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, &correlator, NULL);
		side->r = evrec_recorder_new(side->b, &source, NULL);
	}
	evrec_sink_release(sink);
	return side->watch != NULL && side->r != NULL;
}

void sides_close_one(struct side *side)
{
	evrec_explanation_free(side->inner);
	evrec_watch_free(side->watch);
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

void sides_name(struct sides *w)
{
	static unsigned number;

	*w = (struct sides){ .share = "" };
	(void)snprintf(w->share, sizeof(w->share), "@evrec-explanation-%ld-%u", (long)getpid(), number++);
}

enum evrec_share_role sides_role(const struct side *side)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(side->b, &stats);
	return stats.share_role;
}

void sides_open(struct sides *w, enum evrec_drive worker, const char *path)
{
	sides_name(w);
	assert_true(sides_open_one(&w->sides[0], w->share, "owner", EVREC_DRIVE_THREAD, path));
	while (sides_role(&w->sides[0]) != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(w->sides[0].b);
	}
	assert_true(sides_open_one(&w->sides[1], w->share, "worker", worker, path));
}

void sides_close(struct sides *w)
{
	sides_close_one(&w->sides[1]);
	(void)evrec_broadcaster_shutdown(w->sides[0].b, SIDES_LONG, NULL);
	sides_close_one(&w->sides[0]);
}

void sides_record_about(const struct side *side, const evrec_reference *object, const char *note)
{
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = object;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = str_from(note);
	assert_int_equal(evrec_recorder_emit(side->r, &emit, NULL), 0);
}

void sides_record(const struct side *side, const char *note)
{
	sides_record_about(side, &sides_pod, note);
}

const evrec_explanation *sides_explain(const struct side *side, const evrec_reference *object)
{
	evrec_error err = { 0 };
	const evrec_explanation *e = evrec_explanation_new(side->b, object, SIDES_LONG, &err);

	if (e == NULL) {
		fail_msg("%s", err.message);
	}
	return e;
}
