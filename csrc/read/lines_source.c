/* A source that is a file of events, a line each. */
#include "read/lines.h"

static evrec_reader *open_reader(evrec_source *source, const struct filter *filter, bool watch, evrec_error *err)
{
	const char *path = ((struct path_source *)source)->path;

	return watch ? lines_watch_open(path, filter, err) : lines_query_open(path, filter, err);
}

static const struct source_ops ops = { .open = open_reader, .free = path_source_free };

evrec_source *evrec_source_lines(evrec_str path, evrec_error *err)
{
	return path_source_new(path, "the name of a file, or -", &ops, err);
}
