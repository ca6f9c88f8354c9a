/* named.h - handles of broadcasters with a name. */
#ifndef EVREC_UNIT_NAMED_H
#define EVREC_UNIT_NAMED_H

#include "stats_invariants.h"

#include "tmpdir.h"

static inline evrec_broadcaster_options named_options(const char *name)
{
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.name = evrec_string(name);
	return options;
}

static inline evrec_broadcaster *named_open(const char *name)
{
	const evrec_broadcaster_options options = named_options(name);
	evrec_broadcaster *b = evrec_broadcaster_new(&options, NULL);

	assert_non_null(b);
	return b;
}

static inline evrec_sink *named_file_sink(void *state, const char *file)
{
	evrec_sink *sink = evrec_sink_file(evrec_string(tmpdir_path(state, file)), NULL, NULL);

	assert_non_null(sink);
	return sink;
}

static inline int named_emit(evrec_broadcaster *b, const char *reason)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	evrec_recorder *r = evrec_recorder_new(b, NULL, NULL);
	evrec_emit call;
	int code;

	evrec_emit_init(&call);
	call.regarding = &pod;
	call.type = EVREC_STR("Normal");
	call.reason = evrec_string(reason);
	call.note = EVREC_STR("note");
	code = evrec_recorder_emit(r, &call, NULL);
	evrec_recorder_free(r);
	return code;
}

static inline evrec_stats named_stats(const evrec_broadcaster *b)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(b, &stats);
	return stats;
}

static inline uint64_t named_received(const evrec_watch *watch)
{
	evrec_sink_stats stats;

	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	return stats.received;
}

#endif
