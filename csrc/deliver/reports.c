#include "deliver/reports.h"

#include "base/lru.h"
#include "base/utf8.h"

/* Longer than any back-off: an outage that lasts is one message, the next one another. */
#define QUIET (600 * EVREC_SECOND)

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Equal but for numbers, such as the milliseconds in libcurl's messages. */
static bool alike(const char *a, const char *b)
{
	while (*a != '\0' && *b != '\0') {
		if (digit(*a) && digit(*b)) {
			while (digit(*a)) {
				a++;
			}
			while (digit(*b)) {
				b++;
			}
		} else if (*a++ != *b++) {
			return false;
		}
	}
	return *a == *b;
}

static void fill(struct outbox_report *report, const char *name, const char *message)
{
	size_t len = utf8_floor(str_from(message), sizeof(report->message) - 1);

	report->name = name;
	memcpy(report->message, message, len);
	report->message[len] = '\0';
}

static void queue(struct reports *r, const struct outbox_report *report)
{
	if (r->len == REPORTS_QUEUED) {
		r->lost++;
		return;
	}
	r->queue[(r->first + r->len) % REPORTS_QUEUED] = *report;
	r->len++;
}

void reports_add(struct reports *r, const char *name, const char *message, int64_t now)
{
	struct outbox_report report;
	bool repeated;

	fill(&report, name, message);
	repeated = r->last.name != NULL && strcmp(r->last.name, name) == 0 && alike(r->last.message, report.message) &&
	           time_since(now, r->last_seen) < QUIET;
	r->last_seen = now;
	if (!repeated) {
		r->last = report;
		queue(r, &report);
	}
}

void reports_add_once(struct reports *r, const char *name, const char *message, const char *key)
{
	struct outbox_report report;
	uint64_t h = lru_hash(str_from(key)); /* two of one hash cost a message, no more */

	for (size_t i = 0; i < r->seen_len; i++) {
		if (r->seen[i] == h) {
			return;
		}
	}
	r->seen[r->seen_at] = h;
	r->seen_at = (r->seen_at + 1) % REPORTS_REMEMBERED;
	if (r->seen_len < REPORTS_REMEMBERED) {
		r->seen_len++;
	}
	fill(&report, name, message);
	queue(r, &report);
}

bool reports_next(struct reports *r, struct outbox_report *report)
{
	if (r->len == 0) {
		return false;
	}
	*report = r->queue[r->first];
	r->first = (r->first + 1) % REPORTS_QUEUED;
	r->len--;
	return true;
}
