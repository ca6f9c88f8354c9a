/*
 * The events of a store, which selects by all filters but the field selector.
 */
#include "base/clock.h"
#include "event/event.h"
#include "read/source.h"
#include "store/query.h"

#define SKIPS 64                 /* skipped events between two looks at the clock */
#define LOOK (EVREC_SECOND / 20) /* between two polls of an unchanged store */

struct store_reader {
	evrec_reader base;
	const struct filter *filter;
	struct store_cursor *cursor;
	bool watch;
	size_t told;
};

static struct store_reader *reader_of(evrec_reader *reader)
{
	return (struct store_reader *)reader;
}

/* ---- readers ---- */

/* EVREC_READ_EVENT; EVREC_READ_WAIT: the event is not wanted; or an error. */
static int tell(struct store_reader *r, const struct store_row *row, evrec_found *found, evrec_error *err)
{
	enum json_fault fault;
	evrec_event *event = event_from_json_or_fault(row->json, &fault);

	if (event == NULL) {
		return fault == JSON_NO_MEMORY ? error_set(err, EVREC_ENOMEM, "no memory")
		                               : error_set(err, EVREC_ESYSTEM, "the store has a row that is no event");
	}
	/* The times of the JSON are less exact than those of the store, which has selected by them. */
	if (!selector_matches(&r->filter->selector, evrec_event_fields(event))) {
		evrec_event_release(event);
		return EVREC_READ_WAIT;
	}
	buf_clear(&r->base.json);
	buf_put_str(&r->base.json, row->json);
	r->told++;
	return reader_show(&r->base, event, false, found, err);
}

static bool is_full(const struct store_reader *r)
{
	const size_t limit = r->filter->query.limit;

	return !r->watch && limit != 0 && r->told == limit;
}

/* As store_cursor_next; at the limit the cursor ends, which may hold a transaction. */
static int read_row(struct store_reader *r, struct store_row *row, evrec_error *err)
{
	if (is_full(r)) {
		store_cursor_free(r->cursor);
		r->cursor = NULL;
		return EVREC_READ_END;
	}
	return store_cursor_next(r->cursor, row, err);
}

static int store_next(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err)
{
	struct store_reader *r = reader_of(reader);
	struct store_row row;

	for (unsigned skipped = 0;;) {
		const int got = read_row(r, &row, err);
		const int result = got == EVREC_READ_EVENT ? tell(r, &row, found, err) : got;

		if (result != EVREC_READ_WAIT) {
			return result;
		}
		if (got == EVREC_READ_EVENT && ++skipped % SKIPS != 0) {
			continue;
		}
		if (clock_monotonic(evrec_clock_real()) >= deadline) {
			return EVREC_READ_WAIT;
		}
		if (got == EVREC_READ_WAIT) {
			reader_sleep(deadline, LOOK);
		}
	}
}

static void store_free(evrec_reader *reader)
{
	store_cursor_free(reader_of(reader)->cursor);
	mem_free(reader);
}

static const struct reader_ops reader_ops = { .next = store_next, .free = store_free };

static evrec_reader *open_reader(evrec_source *source, const struct filter *filter, bool watch, evrec_error *err)
{
	const evrec_str path = str_from(((struct path_source *)source)->path);
	struct store_reader *r = mem_zalloc(sizeof(*r));

	if (r == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	r->base.ops = &reader_ops;
	r->filter = filter;
	r->watch = watch;
	r->cursor = watch ? store_watch(path, &filter->query, err) : store_query(path, &filter->query, err);
	if (r->cursor == NULL) {
		mem_free(r);
		return NULL;
	}
	return &r->base;
}

/* ---- the source ---- */

static const struct source_ops source_ops = { .open = open_reader, .free = path_source_free };

evrec_str source_store_path(const evrec_source *source)
{
	return source->ops == &source_ops ? str_from(((const struct path_source *)source)->path)
	                                  : (evrec_str){ NULL, 0 };
}

evrec_source *evrec_source_store(evrec_str path, evrec_error *err)
{
	return store_load_library(err) ? path_source_new(path, "the name of a file", &source_ops, err) : NULL;
}
