/*
 * store_query.c - the processor time that the first 100 events of a query take, in a store that `store` filled: for each
 * filter alone, in pairs, and for values that no event has.
 *
 * usage: store_query PATH
 */
#include "goal.h"
#include "store/query.h"

#include <time.h>

enum { FOR = 1, MENTIONS_NODE = 3, FILTERS = 12 };

static const char *const names[FILTERS] = { "namespace",  "for",      "mentions", "mentions node",
	                                    "controller", "instance", "type",     "reason",
	                                    "action",     "since",    "before",   "kind" };

static const evrec_str warning = { "Warning", 7 }, no_type = { "None", 4 };

static const evrec_query all_events = { .since = INT64_MIN, .before = INT64_MAX };

static void set(evrec_query *q, int filter, bool exists, int64_t newest)
{
	switch (filter) {
	case 0:
		q->ns = exists ? EVREC_STR("team-7") : EVREC_STR("team-777");
		break;
	case 1:
		q->regarding.kind = EVREC_STR("pod");
		q->regarding.name = exists ? EVREC_STR("web-7-5d8f9c7b6d-x407") : EVREC_STR("web-7-none");
		break;
	case 2:
		q->mentions.kind = EVREC_STR("pod");
		q->mentions.name = exists ? EVREC_STR("web-7-5d8f9c7b6d-x407") : EVREC_STR("web-7-none");
		break;
	case 3:
		q->mentions.kind = EVREC_STR("node");
		q->mentions.name = exists ? EVREC_STR("node-7.example.com") : EVREC_STR("node-777");
		break;
	case 4:
		q->controller = exists ? EVREC_STR("controller-7") : EVREC_STR("controller-77");
		break;
	case 5:
		q->instance = exists ? EVREC_STR("node-7.example.com") : EVREC_STR("node-777");
		break;
	case 6:
		q->types = exists ? &warning : &no_type;
		q->types_len = 1;
		break;
	case 7:
		q->reason = exists ? EVREC_STR("ReasonNumber7") : EVREC_STR("ReasonNumber77");
		break;
	case 8:
		q->action = exists ? EVREC_STR("Action7") : EVREC_STR("Action77");
		break;
	case 9:
		q->since = exists ? newest - EVREC_SECOND : newest + EVREC_SECOND;
		break;
	case 10:
		q->before = exists ? newest - 10 * EVREC_SECOND : EVREC_SECOND;
		break;
	default:
		q->regarding.kind = exists ? EVREC_STR("pod") : EVREC_STR("node");
		break;
	}
}

/* Processor time, which another process's load does not lengthen much. */
static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double run(const char *path, const evrec_query *q, unsigned *rows, int64_t *last)
{
	const double begin = now();
	evrec_error err;
	struct store_cursor *c = store_query(evrec_string(path), q, &err);
	struct store_row row = { .last = 0 };
	int result;

	*rows = 0;
	if (c == NULL) {
		(void)fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	while ((result = store_cursor_next(c, &row, &err)) == EVREC_READ_EVENT) {
		*last = row.last;
		++*rows;
	}
	store_cursor_free(c);
	return now() - begin;
}

int main(int argc, char **argv)
{
	double worst = 0, worst_of_objects = 0;
	int64_t newest = 0, last;
	unsigned rows;
	evrec_query q;

	if (argc < 2) {
		return 2;
	}
	q = all_events;
	q.limit = 1;
	(void)run(argv[1], &q, &rows, &newest);
	for (int a = 0; a < FILTERS; a++) {
		for (int b = a; b < FILTERS; b++) {
			for (int which = 0; which < (a == b ? 2 : 3); which++) {
				double best = 1e9;

				for (int try = 0; try < 3; try++) {
					double took;

					q = all_events;
					q.limit = 100;
					set(&q, a, which != 1, newest);
					if (a != b) {
						set(&q, b, which != 2, newest);
					}
					took = run(argv[1], &q, &rows, &last);
					best = took < best ? took : best;
				}
				worst = best > worst ? best : worst;
				if (a == b && a >= FOR && a <= MENTIONS_NODE && best > worst_of_objects) {
					worst_of_objects = best;
				}
				if (a == b || best > 10) {
					printf("%8.2f ms %4u rows  %s%s %s%s\n", best, rows, which == 1 ? "no " : "",
					       names[a],
					       a == b       ? ""
					       : which == 2 ? "+ no"
					                    : "+",
					       a == b ? "" : names[b]);
				}
			}
		}
	}
	goal("the first 100 events, by each filter and each pair", "under 50 ms", worst, "ms", worst < 50);
	goal("the same, --for and --mentions alone", "under 5 ms", worst_of_objects, "ms", worst_of_objects < 5);
	return 0;
}
