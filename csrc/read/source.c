#include "read/source.h"

#include "base/clock.h"

#include <time.h>

void evrec_query_init(evrec_query *query)
{
	*query = (evrec_query){ .since = INT64_MIN, .before = INT64_MAX, .order = EVREC_NEWEST };
}

/* ---- sources ---- */

void *source_new(size_t size, const struct source_ops *ops, evrec_error *err)
{
	evrec_source *source = mem_zalloc(size);

	if (source == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	atomic_init(&source->refs, 1);
	source->ops = ops;
	return source;
}

evrec_source *path_source_new(evrec_str path, const char *must_be, const struct source_ops *ops, evrec_error *err)
{
	struct path_source *source;

	if (path.len == 0 || memchr(path.data, '\0', path.len) != NULL) {
		error_set(err, EVREC_EINVALID, "path: must be %s", must_be);
		return NULL;
	}
	source = source_new(sizeof(*source), ops, err);
	if (source == NULL) {
		return NULL;
	}
	source->path = str_dup(path);
	if (source->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_source_release(&source->base);
		return NULL;
	}
	return &source->base;
}

void path_source_free(evrec_source *source)
{
	mem_free(((struct path_source *)source)->path);
	mem_free(source);
}

evrec_source *evrec_source_retain(evrec_source *source)
{
	atomic_fetch_add_explicit(&source->refs, 1, memory_order_relaxed);
	return source;
}

void evrec_source_release(evrec_source *source)
{
	if (source != NULL && atomic_fetch_sub_explicit(&source->refs, 1, memory_order_acq_rel) == 1) {
		source->ops->free(source);
	}
}

/* ---- readers ---- */

static evrec_reader *open_reader(evrec_source *source, const evrec_query *query, bool watch, evrec_error *err)
{
	struct filter *filter = filter_new(query, err);
	evrec_reader *reader = filter == NULL ? NULL : source->ops->open(source, filter, watch, err);

	if (reader == NULL) {
		filter_free(filter);
		return NULL;
	}
	reader->filter = filter;
	reader->source = evrec_source_retain(source);
	return reader;
}

evrec_reader *evrec_source_query(evrec_source *source, const evrec_query *query, evrec_error *err)
{
	return open_reader(source, query, false, err);
}

evrec_reader *evrec_source_watch(evrec_source *source, const evrec_query *query, evrec_error *err)
{
	return open_reader(source, query, true, err);
}

int64_t reader_deadline(int64_t timeout)
{
	const int64_t now = clock_monotonic(evrec_clock_real());
	int64_t deadline;

	return __builtin_add_overflow(now, timeout, &deadline) ? INT64_MAX : deadline;
}

void reader_sleep(int64_t deadline, int64_t longest)
{
	const int64_t left = time_since(deadline, clock_monotonic(evrec_clock_real()));
	const int64_t rest = left < longest ? left : longest;
	const struct timespec how_long = { (time_t)(rest / EVREC_SECOND), (long)(rest % EVREC_SECOND) };

	(void)nanosleep(&how_long, NULL);
}

/* After an error a reader only says so again. */
static int keep_error(evrec_reader *reader, int result)
{
	if (result < 0) {
		reader->failed = result;
	}
	return result;
}

static int refuse(const evrec_reader *reader, evrec_error *err)
{
	return error_set(err, reader->failed, "the reader ended with an error before");
}

int evrec_reader_begin(evrec_reader *reader, int64_t timeout, evrec_error *err)
{
	int result;

	if (reader->failed != 0) {
		return refuse(reader, err);
	}
	if (reader->ops->begin == NULL) {
		return 0;
	}
	result = reader->ops->begin(reader, reader_deadline(timeout), err);
	if (result == EVREC_READ_WAIT) {
		return error_set(err, EVREC_ETIMEOUT, "the reader has not begun yet");
	}
	return result < 0 ? keep_error(reader, result) : 0;
}

int evrec_reader_next(evrec_reader *reader, int64_t timeout, evrec_found *found, evrec_error *err)
{
	if (reader->failed != 0) {
		return refuse(reader, err);
	}
	return keep_error(reader, reader->ops->next(reader, reader_deadline(timeout), found, err));
}

int reader_show(evrec_reader *reader, evrec_event *event, bool deleted, evrec_found *found, evrec_error *err)
{
	evrec_event_release(reader->event);
	reader->event = event;
	(void)buf_cstr(&reader->json);
	if (event == NULL || reader->json.failed) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	*found = (evrec_found){ event, buf_str(&reader->json), deleted };
	return EVREC_READ_EVENT;
}

char *evrec_reader_take_json(evrec_reader *reader)
{
	char *json = reader->json.data;

	reader->json = (struct buf){ 0 };
	return json;
}

void evrec_reader_free(evrec_reader *reader)
{
	if (reader != NULL) {
		evrec_source *const source = reader->source;
		struct filter *const filter = reader->filter;

		evrec_event_release(reader->event);
		buf_free(&reader->json);
		reader->ops->free(reader);
		filter_free(filter);
		evrec_source_release(source);
	}
}
