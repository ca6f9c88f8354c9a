/*
 * Readers of the occurrences and suppressions of a store. They show JSON, and no event.
 */
#include "read/source.h"
#include "store/query.h"

struct note_reader {
	evrec_reader base;
	struct store_notes *notes;
};

static int note_next(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err)
{
	evrec_str json = { NULL, 0 };
	const int result = store_notes_next(((struct note_reader *)reader)->notes, &json, err);

	(void)deadline;
	if (result == EVREC_READ_EVENT) {
		buf_clear(&reader->json);
		buf_put_str(&reader->json, json);
		(void)buf_cstr(&reader->json);
		if (reader->json.failed) {
			return error_set(err, EVREC_ENOMEM, "no memory");
		}
		*found = (evrec_found){ NULL, buf_str(&reader->json), false };
	}
	return result;
}

static void note_free(evrec_reader *reader)
{
	store_notes_free(((struct note_reader *)reader)->notes);
	mem_free(reader);
}

static const struct reader_ops note_ops = { .next = note_next, .free = note_free };

/* As store_read_occurrences. */
typedef struct store_notes *read_func(evrec_str path, const evrec_query *query, evrec_error *err);

static evrec_reader *open_reader(evrec_source *source, const evrec_query *query, read_func *read, evrec_error *err)
{
	const evrec_str path = source_store_path(source);
	struct filter *filter;
	struct note_reader *r;

	if (path.data == NULL) {
		error_set(err, EVREC_EINVALID, "the source is no store");
		return NULL;
	}
	filter = filter_new(query, err);
	if (filter == NULL) {
		return NULL;
	}
	r = mem_zalloc(sizeof(*r));
	if (r == NULL) {
		filter_free(filter);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	r->notes = read(path, &filter->query, err);
	if (r->notes == NULL) {
		filter_free(filter);
		mem_free(r);
		return NULL;
	}
	r->base.ops = &note_ops;
	r->base.filter = filter;
	r->base.source = evrec_source_retain(source);
	return &r->base;
}

evrec_reader *evrec_source_occurrences(evrec_source *source, evrec_str ns, evrec_str name, evrec_error *err)
{
	evrec_query query;

	evrec_query_init(&query);
	query.regarding.ns = ns;
	query.regarding.name = name;
	return open_reader(source, &query, store_read_occurrences, err);
}

evrec_reader *evrec_source_suppressions(evrec_source *source, const evrec_query *query, evrec_error *err)
{
	return open_reader(source, query, store_read_suppressions, err);
}
