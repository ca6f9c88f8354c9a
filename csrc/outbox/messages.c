#include "outbox/messages.h"

#include "base/lru.h"
#include "base/utf8.h"

/* Longer than any backoff: a lasting outage is one message, the next outage another one. */
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

static void fill(struct outbox_message *report, const char *name, const char *message)
{
	report->name = name;
	utf8_copy(report->message, sizeof(report->message), str_from(message));
}

static void queue(struct messages *r, const struct outbox_message *report)
{
	r->latest = *report;
	if (r->len == MESSAGES_QUEUED) {
		r->lost++;
		return;
	}
	r->queue[(r->first + r->len) % MESSAGES_QUEUED] = *report;
	r->len++;
}

void messages_add(struct messages *r, const char *name, const char *message, int64_t now)
{
	struct outbox_message report;
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

void messages_add_once(struct messages *r, const char *name, const char *message, const char *key)
{
	struct outbox_message report;
	uint64_t h = lru_hash(str_from(key)); /* a collision only loses a message */

	for (size_t i = 0; i < r->seen_len; i++) {
		if (r->seen[i] == h) {
			return;
		}
	}
	r->seen[r->seen_at] = h;
	r->seen_at = (r->seen_at + 1) % MESSAGES_REMEMBERED;
	if (r->seen_len < MESSAGES_REMEMBERED) {
		r->seen_len++;
	}
	fill(&report, name, message);
	queue(r, &report);
}

bool messages_next(struct messages *r, struct outbox_message *report)
{
	if (r->len == 0) {
		return false;
	}
	*report = r->queue[r->first];
	r->first = (r->first + 1) % MESSAGES_QUEUED;
	r->len--;
	return true;
}
