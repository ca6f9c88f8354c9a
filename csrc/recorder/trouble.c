#include "recorder/trouble.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

#define ERROR_IS_RECENT (600 * EVREC_SECOND)

static const char invalid[] = "invalid";

/* Errors after which evrec tries again by itself. */
static bool is_retried(const char *name)
{
	static const char *const names[] = { "transport", "server", "throttled", "unauthorized" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			return true;
		}
	}
	return false;
}

/* Causes that do not explain why the events could not be written before. */
static bool needs_last_error(const char *name)
{
	static const enum evrec_cause causes[] = { EVREC_CAUSE_CLOSED, EVREC_CAUSE_EXPIRED, EVREC_CAUSE_MAX_TRIES,
		                                   EVREC_CAUSE_QUEUE_FULL };

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (strcmp(evrec_cause_name(causes[i]), name) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- noting ---- */

static const struct trouble *find(const struct troubles *t, const char *name)
{
	for (size_t i = 0; i < t->len; i++) {
		if (strcmp(t->kinds[i].name, name) == 0) {
			return &t->kinds[i];
		}
	}
	return NULL;
}

static struct trouble *find_or_add(struct troubles *t, const char *name)
{
	struct trouble *kind = (struct trouble *)find(t, name);

	if (kind != NULL) {
		return kind;
	}
	if (t->len == TROUBLE_KINDS) {
		return &t->kinds[TROUBLE_KINDS - 1];
	}
	kind = &t->kinds[t->len++];
	kind->name = t->len == TROUBLE_KINDS ? "other" : name;
	kind->told_at = EVREC_UNSET;
	return kind;
}

static void append(char out[TROUBLE_TEXT], evrec_str text)
{
	const size_t len = strlen(out);

	utf8_copy(out + len, TROUBLE_TEXT - len, text);
}

void trouble_show_event(const evrec_fields *event, char out[TROUBLE_TEXT])
{
	out[0] = '\0';
	append(out, event->type);
	append(out, EVREC_STR(" "));
	append(out, event->reason);
	append(out, EVREC_STR(" about "));
	append(out, event->regarding.kind);
	append(out, EVREC_STR(" "));
	if (event->regarding.ns.len != 0) {
		append(out, event->regarding.ns);
		append(out, EVREC_STR("/"));
	}
	append(out, event->regarding.name);
	append(out, EVREC_STR(": "));
	append(out, event->note);
}

bool troubles_want_example(const struct troubles *t, const char *name)
{
	const struct trouble *kind = find(t, name);

	return kind == NULL || kind->example[0] == '\0';
}

void troubles_add_lost(struct troubles *t, const char *name, uint64_t n, const char *example)
{
	struct trouble *kind = find_or_add(t, name);

	kind->lost += n;
	t->waiting += n;
	if (example != NULL && kind->example[0] == '\0') {
		utf8_copy(kind->example, sizeof(kind->example), str_from(example));
		kind->place[0] = '\0';
	}
}

void troubles_add_error(struct troubles *t, const char *name, const char *message, const char *sink)
{
	struct trouble *kind = find_or_add(t, name);

	kind->errors++;
	t->waiting++;
	utf8_copy(kind->sink, sizeof(kind->sink), str_from(sink != NULL ? sink : ""));
	utf8_copy(kind->message, sizeof(kind->message), str_from(message));
	if (is_retried(name)) {
		t->last_error = kind;
	}
}

bool troubles_want_place(const struct troubles *t)
{
	const struct trouble *kind = find(t, invalid);

	return kind != NULL && kind->example[0] != '\0' && kind->place[0] == '\0';
}

void troubles_set_place(struct troubles *t, const char *place)
{
	struct trouble *kind = (struct trouble *)find(t, invalid);

	if (kind != NULL) {
		utf8_copy(kind->place, sizeof(kind->place), str_from(place));
	}
}

/* ---- telling ---- */

static void put_text(struct line *line, const char *text)
{
	line_put_escaped(line, str_from(text));
}

/* " in 10 s", except of a kind's first line, and of one that follows within a second. */
static void put_period(const struct trouble *kind, int64_t now, struct line *line)
{
	const int64_t seconds = kind->told_at == EVREC_UNSET ? 0 : time_since(now, kind->told_at) / EVREC_SECOND;

	if (seconds != 0) {
		line_printf(line, " in %" PRId64 " s", seconds);
	}
}

static void put_refused(const struct trouble *kind, int64_t now, struct line *line)
{
	line_printf(line, kind->lost == 1 ? "1 recording call was refused" : "%" PRIu64 " recording calls were refused",
	            kind->lost);
	put_period(kind, now, line);
	line_printf(line, ": %s%s", kind->name, kind->lost == 1 ? ": " : "; e.g. ");
	put_text(line, kind->example);
	if (kind->place[0] != '\0') {
		line_printf(line, " (");
		put_text(line, kind->place);
		line_printf(line, ")");
	}
}

/* An older error does not explain present losses. An outbox repeats an error's message after 10 minutes. */
static bool has_recent_error(const struct troubles *t, int64_t now)
{
	const struct trouble *kind = t->last_error;

	return kind != NULL && (kind->errors != 0 || time_since(now, kind->told_at) <= ERROR_IS_RECENT);
}

static void put_lost(const struct troubles *t, const struct trouble *kind, int64_t now, struct line *line)
{
	line_printf(line, kind->lost == 1 ? "1 event was not written" : "%" PRIu64 " events were not written",
	            kind->lost);
	put_period(kind, now, line);
	line_printf(line, ": %s", kind->name);
	if (kind->message[0] != '\0') {
		line_printf(line, ": ");
		put_text(line, kind->message);
	}
	if (kind->example[0] != '\0') {
		line_printf(line, "; e.g. ");
		put_text(line, kind->example);
	}
	if (has_recent_error(t, now) && needs_last_error(kind->name)) {
		line_printf(line, "; the last error was %s: ", t->last_error->name);
		put_text(line, t->last_error->message);
	}
}

static void put_errors(const struct trouble *kind, int64_t now, struct line *line)
{
	if (kind->sink[0] != '\0') {
		line_printf(line, "the sink %s: ", kind->sink);
	}
	line_printf(line, "%s: ", kind->name);
	put_text(line, kind->message);
	if (is_retried(kind->name)) {
		line_printf(line, " (is retried)");
	}
	if (kind->errors > 1) {
		line_printf(line, "; the last of %" PRIu64 " errors", kind->errors);
		put_period(kind, now, line);
	}
}

static bool is_due(const struct trouble *kind, int64_t now, bool all)
{
	return (kind->lost != 0 || kind->errors != 0) &&
	       (all || kind->told_at == EVREC_UNSET || time_since(now, kind->told_at) >= TROUBLE_PERIOD);
}

static void put_untold(const struct troubles *t, struct line *line)
{
	line_printf(line, "refused calls, lost events and errors that could not be printed earlier: %" PRIu64,
	            t->untold);
}

static void put_line(struct troubles *t, const struct trouble *kind, int64_t now, struct line *line)
{
	*line = (struct line){ .len = 0 };
	line_printf(line, "evrec: ");
	/* Comes first, so that it is not cut off a long line. */
	if (t->untold != 0) {
		line_printf(line, "(");
		put_untold(t, line);
		line_printf(line, ") ");
	}
	if (strcmp(kind->name, invalid) == 0) {
		put_refused(kind, now, line);
	} else if (kind->lost != 0) {
		put_lost(t, kind, now, line);
	} else {
		put_errors(kind, now, line);
	}
}

/* An error's message stays, because the queue of messages repeats none for 10 minutes. */
static void begin_anew(struct troubles *t, struct trouble *kind, int64_t now)
{
	t->taken = kind->lost + kind->errors + t->untold;
	t->taken_at = now;
	t->untold = 0;
	t->waiting -= kind->lost + kind->errors;
	kind->lost = kind->errors = 0;
	kind->example[0] = kind->place[0] = '\0';
	kind->told_at = now;
}

/* Makes a line with the number of untold losses and errors, if no other line with it comes. */
static bool next_untold(struct troubles *t, int64_t now, bool all, struct line *line)
{
	if (t->untold == 0 || (!all && time_since(now, t->taken_at) < TROUBLE_PERIOD)) {
		return false;
	}
	*line = (struct line){ .len = 0 };
	line_printf(line, "evrec: ");
	put_untold(t, line);
	t->taken = t->untold;
	t->taken_at = now;
	t->untold = 0;
	return true;
}

bool troubles_next_line(struct troubles *t, int64_t now, bool all, struct line *line)
{
	for (size_t i = 0; t->waiting != 0 && i < t->len; i++) {
		if (is_due(&t->kinds[i], now, all)) {
			put_line(t, &t->kinds[i], now, line);
			begin_anew(t, &t->kinds[i], now);
			return true;
		}
	}
	return next_untold(t, now, all, line);
}

void troubles_not_told(struct troubles *t)
{
	t->untold += t->taken;
	t->taken = 0;
}
