#include "sink/trace_inner.h"

#define MIN_BYTES 4096

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	const struct trace_sink *trace = (const struct trace_sink *)sink;

	fingerprint_add(f, "path", str_from(trace->path));
	fingerprint_add_number(f, "max_bytes", (int64_t)trace->max_bytes);
}

static void free_kind(evrec_sink *sink)
{
	mem_free(trace_sink_of(sink)->path);
}

evrec_sink *trace_sink_new(evrec_str path, uint64_t max_bytes, const struct trace_header *header, evrec_error *err)
{
	evrec_sink_options options;
	struct trace_sink *sink;

	if (path.len == 0 || memchr(path.data, '\0', path.len) != NULL) {
		error_set(err, EVREC_EINVALID, "path: must be the name of a file");
		return NULL;
	}
	if (max_bytes < MIN_BYTES || max_bytes > INT64_MAX) {
		error_set(err, EVREC_EINVALID, "max_bytes: must be at least %d", MIN_BYTES);
		return NULL;
	}
	evrec_sink_options_init(&options);
	options.limits.max_age = 0;
	sink = sink_new(sizeof(*sink), &options, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "trace";
	sink->base.traces = true;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.open = trace_open_protocol;
	sink->base.free = free_kind;
	sink->max_bytes = max_bytes;
	sink->header = *header;
	sink->path = str_dup(path);
	if (sink->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	return &sink->base;
}

bool trace_sink_is_over(const evrec_sink *sink)
{
	return atomic_load_explicit(&((const struct trace_sink *)sink)->over, memory_order_relaxed);
}

void trace_sink_lost(evrec_sink *sink, int64_t now)
{
	struct trace_sink *trace = trace_sink_of(sink);

	if (atomic_fetch_add(&trace->lost, 1) == 0) {
		atomic_store(&trace->lost_from, now);
	}
	atomic_store(&trace->lost_to, now);
}
