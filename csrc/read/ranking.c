#include "read/ranking.h"

/* Whether `a` is told before `b`. */
static bool is_before(const struct ranking *r, const struct ranked *a, const struct ranked *b)
{
	if (a->rank != b->rank) {
		return (a->rank > b->rank) == r->descending;
	}
	if (a->tie != b->tie) {
		return (a->tie > b->tie) == r->descending;
	}
	return a->number < b->number;
}

static void swap(struct ranked *a, struct ranked *b)
{
	const struct ranked other = *a;

	*a = *b;
	*b = other;
}

static void sift_up(struct ranking *r, size_t i)
{
	while (i != 0 && is_before(r, &r->things[(i - 1) / 2], &r->things[i])) {
		swap(&r->things[(i - 1) / 2], &r->things[i]);
		i = (i - 1) / 2;
	}
}

/* Among the first `len` things. */
static void sift_down(struct ranking *r, size_t i, size_t len)
{
	for (;;) {
		const size_t left = 2 * i + 1, right = left + 1;
		size_t last = i;

		if (left < len && is_before(r, &r->things[last], &r->things[left])) {
			last = left;
		}
		if (right < len && is_before(r, &r->things[last], &r->things[right])) {
			last = right;
		}
		if (last == i) {
			return;
		}
		swap(&r->things[i], &r->things[last]);
		i = last;
	}
}

bool ranking_takes(const struct ranking *r, int64_t rank, uint64_t tie)
{
	const struct ranked thing = { .rank = rank, .number = r->numbers, .tie = tie };

	return r->limit == 0 || r->len < r->limit || is_before(r, &thing, &r->things[0]);
}

static bool reserve(struct ranking *r)
{
	const size_t cap = r->cap == 0 ? 64 : 2 * r->cap;
	struct ranked *things;

	if (r->len < r->cap) {
		return true;
	}
	things = mem_realloc(r->things, cap * sizeof(*things));
	if (things == NULL) {
		return false;
	}
	r->things = things;
	r->cap = cap;
	return true;
}

bool ranking_put(struct ranking *r, int64_t rank, uint64_t tie, char *text, size_t len)
{
	const struct ranked thing = { rank, r->numbers, tie, text, len };

	if (!ranking_takes(r, rank, tie)) {
		mem_free(text);
		return true;
	}
	if (r->limit != 0 && r->len == r->limit) {
		mem_free(r->things[0].text);
		r->things[0] = thing;
		sift_down(r, 0, r->len);
	} else if (reserve(r)) {
		r->things[r->len++] = thing;
		sift_up(r, r->len - 1);
	} else {
		mem_free(text);
		return false;
	}
	r->numbers++;
	return true;
}

void ranking_sort(struct ranking *r)
{
	for (size_t len = r->len; len > 1; len--) {
		swap(&r->things[0], &r->things[len - 1]);
		sift_down(r, 0, len - 1);
	}
}

struct ranked *ranking_next(struct ranking *r)
{
	return r->at == r->len ? NULL : &r->things[r->at++];
}

void ranking_clear(struct ranking *r)
{
	for (size_t i = 0; i < r->len; i++) {
		mem_free(r->things[i].text);
	}
	r->len = r->at = 0;
	r->numbers = 0;
}

void ranking_free(struct ranking *r)
{
	ranking_clear(r);
	mem_free(r->things);
	r->things = NULL;
	r->cap = 0;
}
