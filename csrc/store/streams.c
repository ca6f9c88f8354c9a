#include "store/query_inner.h"

#define READ_AHEAD 8192 /* places of all streams together */
#define ROOM_MIN 2
#define ROOM_MAX 256

/* ?1 to ?3: the place after which to read; ?4: the bound; ?5: how many; ?6: the key. */
static const char *const sources[2][STREAM_INDEXES] = {
	[EVREC_NEWEST] = {
		[STREAM_LAST] = "SELECT last, facet, rv FROM events WHERE (last, facet, rv) < (?1, ?2, ?3) AND "
				"last >= ?4 ORDER BY last DESC, facet DESC, rv DESC LIMIT ?5",
		[STREAM_FACET] = "SELECT last, facet, rv FROM events WHERE facet = ?6 AND (last, rv) < (?1, ?3) AND "
				 "last >= ?4 ORDER BY last DESC, rv DESC LIMIT ?5",
		[STREAM_REGARDING] = "SELECT last, facet, rv FROM events WHERE regarding = ?6 AND "
				     "(last, facet, rv) < (?1, ?2, ?3) AND last >= ?4 "
				     "ORDER BY last DESC, facet DESC, rv DESC LIMIT ?5",
		[STREAM_RELATED] = "SELECT last, facet, rv FROM events WHERE related = ?6 AND "
				   "(last, facet, rv) < (?1, ?2, ?3) AND last >= ?4 "
				   "ORDER BY last DESC, facet DESC, rv DESC LIMIT ?5",
	},
	[EVREC_OLDEST] = {
		[STREAM_LAST] = "SELECT last, facet, rv FROM events WHERE (last, facet, rv) > (?1, ?2, ?3) AND "
				"last < ?4 ORDER BY last, facet, rv LIMIT ?5",
		[STREAM_FACET] = "SELECT last, facet, rv FROM events WHERE facet = ?6 AND (last, rv) > (?1, ?3) AND "
				 "last < ?4 ORDER BY last, rv LIMIT ?5",
		[STREAM_REGARDING] = "SELECT last, facet, rv FROM events WHERE regarding = ?6 AND "
				     "(last, facet, rv) > (?1, ?2, ?3) AND last < ?4 "
				     "ORDER BY last, facet, rv LIMIT ?5",
		[STREAM_RELATED] = "SELECT last, facet, rv FROM events WHERE related = ?6 AND "
				   "(last, facet, rv) > (?1, ?2, ?3) AND last < ?4 ORDER BY last, facet, rv LIMIT ?5",
	},
};

void streams_init(struct streams *s, const evrec_query *query)
{
	*s = (struct streams){ .order = query->order };
	if (query->order == EVREC_OLDEST) {
		s->position = (struct place){ query->since, INT64_MIN, INT64_MIN };
		s->bound = query->before;
	} else {
		s->position = (struct place){ query->before, INT64_MIN, INT64_MIN };
		s->bound = query->since;
	}
}

static void drop_streams(struct streams *s)
{
	mem_free(s->all);
	mem_free(s->places);
	mem_free(s->heap);
	s->all = NULL;
	s->places = NULL;
	s->heap = NULL;
	s->len = s->heap_len = 0;
}

void streams_fini(struct streams *s)
{
	drop_streams(s);
	store_db_finalize_all(s->statements, STREAM_INDEXES);
}

/* ---- reading ahead ---- */

static struct place *places_of(const struct streams *s, size_t i)
{
	return s->places + i * s->room;
}

/*
 * The number after which a stream is read that goes on at `after`. A stream of a facet leaves the facet out of its
 * comparison: if `after` is of another facet, the stream's events of that time come all later, or all earlier.
 */
static int64_t number_after(const struct stream *stream, const struct place *after)
{
	if (stream->index != STREAM_FACET || stream->key == after->facet) {
		return after->rv;
	}
	return stream->key > after->facet ? INT64_MIN : INT64_MAX;
}

static bool refill(struct streams *s, struct store_db *d, size_t i, const struct place *after, evrec_error *err)
{
	struct stream *stream = &s->all[i];
	struct place *into = places_of(s, i);
	sqlite3_stmt **statement = &s->statements[stream->index];
	int row;

	if (*statement == NULL) {
		*statement = store_db_prepare(d, sources[s->order][stream->index], err);
		if (*statement == NULL) {
			return false;
		}
	}
	(void)sqlite3_bind_int64(*statement, 1, after->last);
	(void)sqlite3_bind_int64(*statement, 2, after->facet);
	(void)sqlite3_bind_int64(*statement, 3, number_after(stream, after));
	(void)sqlite3_bind_int64(*statement, 4, s->bound);
	(void)sqlite3_bind_int64(*statement, 5, (int64_t)s->room);
	(void)sqlite3_bind_int64(*statement, 6, stream->key);
	stream->at = stream->len = 0;
	while ((row = store_db_step(d, *statement, err)) == 1) {
		into[stream->len++] = (struct place){
			sqlite3_column_int64(*statement, 0),
			sqlite3_column_int64(*statement, 1),
			sqlite3_column_int64(*statement, 2),
		};
	}
	(void)sqlite3_reset(*statement);
	return row == 0;
}

/* ---- the heap ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const struct place *a, const struct place *b)
{
	int order = compare_numbers(a->last, b->last);

	if (order == 0) {
		order = compare_numbers(a->facet, b->facet);
	}
	return order != 0 ? order : compare_numbers(a->rv, b->rv);
}

/* Stream `a` has the earlier event in the order of the query. */
static bool is_before(const struct streams *s, size_t a, size_t b)
{
	const int order = compare(places_of(s, a) + s->all[a].at, places_of(s, b) + s->all[b].at);

	return s->order == EVREC_OLDEST ? order < 0 : order > 0;
}

static void swap(size_t *a, size_t *b)
{
	const size_t other = *a;

	*a = *b;
	*b = other;
}

static void push(struct streams *s, size_t stream)
{
	size_t i = s->heap_len++;

	s->heap[i] = stream;
	while (i > 0 && is_before(s, s->heap[i], s->heap[(i - 1) / 2])) {
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sink_first(struct streams *s)
{
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < s->heap_len && is_before(s, s->heap[child + 1], s->heap[child])) {
			child++;
		}
		if (child >= s->heap_len || !is_before(s, s->heap[child], s->heap[i])) {
			return;
		}
		swap(&s->heap[i], &s->heap[child]);
		i = child;
	}
}

/* ---- merging ---- */

bool streams_use(struct streams *s, struct store_db *d, struct stream *all, size_t len, evrec_error *err)
{
	drop_streams(s);
	s->all = all;
	s->len = len;
	s->room = len == 0 ? ROOM_MIN : READ_AHEAD / len;
	s->room = s->room < ROOM_MIN ? ROOM_MIN : s->room > ROOM_MAX ? ROOM_MAX : s->room;
	s->places = mem_alloc((len + 1) * s->room * sizeof(*s->places));
	s->heap = mem_alloc((len + 1) * sizeof(*s->heap));
	if (s->places == NULL || s->heap == NULL) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		if (!refill(s, d, i, &s->position, err)) {
			return false;
		}
		if (all[i].len != 0) {
			push(s, i);
		}
	}
	return true;
}

/* Takes the first event off the heap. */
static bool take(struct streams *s, struct store_db *d, struct place *place, evrec_error *err)
{
	const size_t i = s->heap[0];
	struct stream *stream = &s->all[i];

	*place = places_of(s, i)[stream->at++];
	if (stream->at == stream->len && stream->len == s->room && !refill(s, d, i, place, err)) {
		return false;
	}
	if (stream->at == stream->len) {
		s->heap[0] = s->heap[--s->heap_len];
	}
	sink_first(s);
	return true;
}

int streams_next(struct streams *s, struct store_db *d, struct place *place, evrec_error *err)
{
	const int64_t previous = s->position.rv;

	do {
		if (s->heap_len == 0) {
			return 0;
		}
		if (!take(s, d, place, err)) {
			return -1;
		}
		/* An event is in two streams if both of its objects match. */
	} while (place->rv == previous);
	s->position = *place;
	return 1;
}
