#include "sink/sink.h"

#include "event/event.h"
#include "outbox/outbox.h"
#include "spool/sqlite.h"

void evrec_sink_options_init(evrec_sink_options *options)
{
	*options = (evrec_sink_options){ .spool_after = EVREC_SECOND, .spool_journal = true };
	evrec_limits_init(&options->limits);
	options->series = (evrec_series_options){
		.refresh_interval = 1800 * EVREC_SECOND,
		.finish_time = 360 * EVREC_SECOND,
		.max_series = 4096,
	};
}

#define SERIES_MAX (1U << 24) /* the largest max_series */

static int check_series(const evrec_series_options *o, evrec_error *err)
{
	if (o->refresh_interval < EVREC_SECOND) {
		return error_set(err, EVREC_EINVALID, "refresh_interval: must be at least 1 s");
	}
	if (o->finish_time < EVREC_SECOND) {
		return error_set(err, EVREC_EINVALID, "finish_time: must be at least 1 s");
	}
	if (o->max_series < 1 || o->max_series > SERIES_MAX) {
		return error_set(err, EVREC_EINVALID, "max_series: must be 1 to %u", SERIES_MAX);
	}
	return 0;
}

static int check_enums(const evrec_sink_options *o, evrec_error *err)
{
	if (o->api > EVREC_SINK_AUTO) {
		return error_set(err, EVREC_EINVALID, "api: must be one of enum evrec_sink_api");
	}
	if (o->correlate > EVREC_CORRELATE_SERIES) {
		return error_set(err, EVREC_EINVALID, "correlate: must be one of enum evrec_correlate");
	}
	return 0;
}

bool sink_has_series(const evrec_sink_options *options)
{
	return options->correlate == EVREC_CORRELATE_SERIES ||
	       (options->correlate == EVREC_CORRELATE_BY_API && options->api != EVREC_SINK_CORE_V1);
}

static bool is_path(evrec_str path)
{
	return path.len == 0 || memchr(path.data, '\0', path.len) == NULL;
}

static int check_state_file(const evrec_sink_options *options, evrec_error *err)
{
	if (!is_path(options->state_file)) {
		return error_set(err, EVREC_EINVALID, "state_file: must be the name of a file");
	}
	return 0;
}

int sink_check_options(const evrec_sink_options *options, evrec_error *err)
{
	if (!is_path(options->spool)) {
		return error_set(err, EVREC_EINVALID, "spool: must be the name of a folder");
	}
	if (options->spool_after < 0) {
		return error_set(err, EVREC_EINVALID, "spool_after: must not be negative");
	}
	if (check_state_file(options, err) != 0) {
		return EVREC_EINVALID;
	}
	if (check_text(options->name, "name", EVREC_SINK_NAME_SIZE - 1, false, err) != 0) {
		return EVREC_EINVALID;
	}
	if (check_enums(options, err) != 0 || check_series(&options->series, err) != 0) {
		return EVREC_EINVALID;
	}
	return outbox_check_limits(&options->limits, err);
}

const char *sink_name(const evrec_sink *sink)
{
	return sink->options.name.len != 0 ? sink->name : sink->kind;
}

enum evrec_api sink_api(const evrec_sink_options *options)
{
	return options->api == EVREC_SINK_CORE_V1 ? EVREC_CORE_V1 : EVREC_EVENTS_V1;
}

/* Copies a path of the options, which is unset or has a copy then. False: no memory. */
static bool copy_path(evrec_str *path, char **copy)
{
	if (path->len != 0) {
		*copy = str_dup(*path);
		path->data = *copy;
	}
	return path->len == 0 || *copy != NULL;
}

void *sink_new(size_t size, const evrec_sink_options *options, evrec_error *err)
{
	evrec_sink_options defaults;
	evrec_sink *sink;

	if (options == NULL) {
		evrec_sink_options_init(&defaults);
		options = &defaults;
	}
	/* A spool is opened later, perhaps in a chroot. */
	if (sink_check_options(options, err) != 0 || (options->spool.len != 0 && !sqlite_load(err))) {
		return NULL;
	}
	sink = mem_zalloc(size);
	if (sink == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	atomic_init(&sink->refs, 1);
	sink->options = *options;
	if (options->name.len != 0) {
		memcpy(sink->name, options->name.data, options->name.len);
		sink->options.name.data = sink->name;
	}
	if (!copy_path(&sink->options.spool, &sink->spool) ||
	    !copy_path(&sink->options.state_file, &sink->state_file)) {
		mem_free(sink->spool);
		mem_free(sink);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	return sink;
}

evrec_sink *evrec_sink_retain(evrec_sink *sink)
{
	atomic_fetch_add_explicit(&sink->refs, 1, memory_order_relaxed);
	return sink;
}

void evrec_sink_release(evrec_sink *sink)
{
	if (sink == NULL || atomic_fetch_sub(&sink->refs, 1) != 1) {
		return;
	}
	if (sink->free != NULL) {
		sink->free(sink);
	}
	mem_free(sink->spool);
	mem_free(sink->state_file);
	mem_free(sink);
}
