#include "correlate/origins.h"

#define ORIGINS_MAX 64 /* processes of one event; if there are more, the one that was noted first is removed */

enum { UNLIMITED, LIMITED, KINDS };

struct mark {
	uint64_t process, connection;
	uint32_t n[KINDS];      /* over this connection */
	uint32_t before[KINDS]; /* over an earlier one: expected again */
};

struct origins {
	uint32_t len, room;
	struct mark marks[];
};

struct saved {
	uint64_t process;
	uint32_t n[KINDS];
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

/* The process has a new connection: it records the occurrences of its earlier ones again. */
static void reconnect(struct mark *mark, uint64_t connection)
{
	if (mark->connection == connection) {
		return;
	}
	for (int kind = 0; kind < KINDS; kind++) {
		mark->before[kind] = add(mark->before[kind], mark->n[kind]);
		mark->n[kind] = 0;
	}
	mark->connection = connection;
}

bool origins_take(struct origins *origins, const struct origin *from, bool *limited)
{
	struct mark *mark = from->again ? find(origins, from->process) : NULL;

	if (mark == NULL) {
		return false;
	}
	reconnect(mark, from->connection);
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

uint32_t origins_sum(const struct origins *origins)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; origins != NULL && i < origins->len; i++) {
		for (int kind = 0; kind < KINDS; kind++) {
			sum = add(sum, add(origins->marks[i].n[kind], origins->marks[i].before[kind]));
		}
	}
	return sum;
}

uint32_t origins_expected(const struct origins *origins)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; origins != NULL && i < origins->len; i++) {
		sum = add(sum, add(origins->marks[i].before[UNLIMITED], origins->marks[i].before[LIMITED]));
	}
	return sum;
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

void origins_add(struct origins **origins, const struct origin *from, bool limited)
{
	struct mark *mark;

	if (from->connection == 0) {
		return;
	}
	mark = find(*origins, from->process);
	if (mark == NULL) {
		mark = make(origins);
		if (mark == NULL) {
			return;
		}
		*mark = (struct mark){ .process = from->process, .connection = from->connection };
	}
	reconnect(mark, from->connection);
	if (!from->again) {
		/* A process first records all old occurrences again, and only then new ones. */
		memset(mark->before, 0, sizeof(mark->before));
	}
	mark->n[limited] = add(mark->n[limited], 1);
}

static bool is_empty(const struct mark *mark)
{
	return (mark->n[UNLIMITED] | mark->n[LIMITED] | mark->before[UNLIMITED] | mark->before[LIMITED]) == 0;
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

uint32_t origins_acknowledge(struct origins **origins, uint64_t connection, bool limited, uint32_t n)
{
	struct mark *mark = find_connection(*origins, connection);
	uint32_t found = 0;

	if (mark != NULL) {
		found = n < mark->n[limited] ? n : mark->n[limited];
		mark->n[limited] -= found;
		if (is_empty(mark)) {
			remove_mark(origins, mark);
		}
	}
	return found;
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
			                     { add(mark->n[UNLIMITED], mark->before[UNLIMITED]),
			                       add(mark->n[LIMITED], mark->before[LIMITED]) } };

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
		*mark = (struct mark){ .process = saved.process };
		memcpy(mark->before, saved.n, sizeof(saved.n));
	}
	return RESTORED;
}
