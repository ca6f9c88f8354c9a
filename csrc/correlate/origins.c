#include "correlate/origins.h"

#define EARLIER UINT64_MAX /* connection: to an earlier owner */
#define ORIGINS_MAX 256    /* processes of one event; if there are more, one of the first is removed */

enum { UNLIMITED, LIMITED, KINDS };

struct mark {
	uint64_t process, connection;
	uint64_t batch;         /* of `told` */
	uint32_t n[KINDS];      /* over this connection */
	uint32_t told[KINDS];   /* over this connection, and acknowledged in that batch */
	uint32_t before[KINDS]; /* over an earlier one: expected again */
};

struct origins {
	uint32_t len, room;
	struct mark marks[];
};

struct saved {
	uint64_t process, batch;
	uint32_t n[KINDS], told[KINDS];
};

static struct mark *find(struct origins *origins, uint64_t process)
{
	for (uint32_t i = 0; origins != NULL && i < origins->len; i++) {
		if (origins->marks[i].process == process) {
			return &origins->marks[i];
		}
	}
	return NULL;
}

static uint32_t add(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/*
 * The process has a new connection: it records the occurrences of its earlier ones again, unless it was told that they
 * are acknowledged.
 */
static void begin_connection(struct mark *mark, const struct origin *from)
{
	if (mark->connection == from->connection) {
		return;
	}
	for (int kind = 0; kind < KINDS; kind++) {
		const uint32_t told = mark->batch == from->batch ? 0 : mark->told[kind];

		mark->before[kind] = add(mark->before[kind], add(mark->n[kind], told));
		mark->n[kind] = mark->told[kind] = 0;
	}
	mark->connection = from->connection;
}

static void record(struct mark *mark, const struct origin *from)
{
	begin_connection(mark, from);
	if (!from->again) {
		/* A process records all occurrences again that it has to, and new ones only then. */
		memset(mark->before, 0, sizeof(mark->before));
	}
}

bool origins_take(struct origins *origins, const struct origin *from, bool *limited)
{
	struct mark *mark = find(origins, from->process);

	if (mark == NULL) {
		return false;
	}
	record(mark, from);
	/* Occurrences that were not limited come first, so that the event is written with its count. */
	for (int kind = 0; kind < KINDS; kind++) {
		if (mark->before[kind] != 0) {
			mark->before[kind]--;
			*limited = kind == LIMITED;
			return true;
		}
	}
	return false;
}

bool origins_is_to_reconnect(struct origins *origins, const struct origin *from)
{
	const struct mark *mark = find(origins, from->process);

	return mark != NULL && mark->connection != from->connection;
}

static uint32_t sum_of(const uint32_t n[KINDS])
{
	return add(n[UNLIMITED], n[LIMITED]);
}

/* A place for the marks of one more process. NULL: no memory. */
static struct mark *make(struct origins **origins)
{
	const uint32_t len = *origins == NULL ? 0 : (*origins)->len;
	const uint32_t room = *origins == NULL ? 0 : (*origins)->room;
	struct origins *grown;

	if (len == ORIGINS_MAX) {
		memmove((*origins)->marks, (*origins)->marks + 1, (len - 1) * sizeof(struct mark));
		return &(*origins)->marks[len - 1];
	}
	if (len == room) {
		const uint32_t more = room == 0 ? 1 : 2 * room;

		grown = mem_realloc(*origins, sizeof(*grown) + more * sizeof(struct mark));
		if (grown == NULL) {
			return NULL;
		}
		grown->len = len;
		grown->room = more;
		*origins = grown;
	}
	return &(*origins)->marks[(*origins)->len++];
}

static bool is_empty(const struct mark *mark)
{
	return sum_of(mark->n) == 0 && sum_of(mark->told) == 0 && sum_of(mark->before) == 0;
}

static struct mark *find_connection(struct origins *origins, uint64_t connection)
{
	for (uint32_t i = 0; origins != NULL && i < origins->len; i++) {
		if (origins->marks[i].connection == connection) {
			return &origins->marks[i];
		}
	}
	return NULL;
}

static void remove_mark(struct origins **origins, struct mark *mark)
{
	struct origins *all = *origins;

	*mark = all->marks[--all->len];
	if (all->len == 0) {
		mem_free(all);
		*origins = NULL;
	}
}

void origins_add(struct origins **origins, const struct origin *from, bool limited)
{
	struct mark *mark = find(*origins, from->process);

	if (from->connection == 0) {
		/* The process may have a mark from the time when it was a worker of an earlier owner. */
		if (mark != NULL && is_empty(mark)) {
			remove_mark(origins, mark);
		}
		return;
	}
	if (mark == NULL) {
		mark = make(origins);
		if (mark == NULL) {
			return;
		}
		*mark = (struct mark){ .process = from->process, .connection = from->connection };
	}
	record(mark, from);
	mark->n[limited] = add(mark->n[limited], 1);
}

void origins_reconnect(struct origins **origins, const struct origin *from)
{
	struct mark *mark = find(*origins, from->process);

	if (mark != NULL) {
		begin_connection(mark, from);
		if (is_empty(mark)) {
			remove_mark(origins, mark);
		}
	}
}

void origins_tell(struct origins *origins, uint64_t connection, bool limited, uint32_t n, uint64_t batch)
{
	struct mark *mark = find_connection(origins, connection);

	if (mark == NULL) {
		return;
	}
	if (mark->batch != batch) {
		memset(mark->told, 0, sizeof(mark->told));
		mark->batch = batch;
	}
	n = n < mark->n[limited] ? n : mark->n[limited];
	mark->n[limited] -= n;
	mark->told[limited] = add(mark->told[limited], n);
}

void origins_acknowledge(struct origins **origins, uint64_t connection, bool limited, uint32_t n)
{
	struct mark *mark = find_connection(*origins, connection);

	if (mark != NULL) {
		mark->told[limited] -= n < mark->told[limited] ? n : mark->told[limited];
		if (is_empty(mark)) {
			remove_mark(origins, mark);
		}
	}
}

bool origins_have(struct origins *origins, uint64_t connection)
{
	return find_connection(origins, connection) != NULL;
}

void origins_leave(struct origins **origins, uint64_t connection)
{
	struct mark *mark = find_connection(*origins, connection);

	if (mark != NULL) {
		remove_mark(origins, mark);
	}
}

/* ---- as bytes ---- */

void origins_save(const struct origins *origins, struct buf *out)
{
	const uint32_t len = origins == NULL ? 0 : origins->len;

	buf_put(out, &len, sizeof(len));
	for (uint32_t i = 0; i < len; i++) {
		const struct mark *mark = &origins->marks[i];
		const struct saved saved = { mark->process,
			                     mark->batch,
			                     { add(mark->n[UNLIMITED], mark->before[UNLIMITED]),
			                       add(mark->n[LIMITED], mark->before[LIMITED]) },
			                     { mark->told[UNLIMITED], mark->told[LIMITED] } };

		buf_put(out, &saved, sizeof(saved));
	}
}

enum restored origins_restore(struct origins **origins, evrec_str *bytes)
{
	uint32_t len;

	if (!restored_take(bytes, &len, sizeof(len)) || len > ORIGINS_MAX) {
		return RESTORED_INVALID;
	}
	while (len-- > 0) {
		struct saved saved;
		struct mark *mark;

		if (!restored_take(bytes, &saved, sizeof(saved))) {
			return RESTORED_INVALID;
		}
		mark = make(origins);
		if (mark == NULL) {
			return RESTORED_NO_MEMORY;
		}
		*mark = (struct mark){ .process = saved.process, .connection = EARLIER, .batch = saved.batch };
		memcpy(mark->before, saved.n, sizeof(saved.n));
		memcpy(mark->told, saved.told, sizeof(saved.told));
	}
	return RESTORED;
}
