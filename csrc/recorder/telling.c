/* A broadcaster tells of drops, refused calls and errors: to callbacks, in lines, and in the results of a flush. */
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "recorder/broadcaster.h"
#include "sender/last_words.h"
#include "sender/sender.h"

static void hide_secrets(const evrec_broadcaster *b, char *text)
{
	for (size_t i = 0; i < b->sinks.len; i++) {
		secret_hide(text, pipeline_secret(b->sinks.items[i]->pipeline));
	}
}

static void copy_hidden(const evrec_broadcaster *b, const char *text, char copy[TROUBLE_TEXT])
{
	utf8_copy(copy, TROUBLE_TEXT, str_from(text));
	hide_secrets(b, copy);
}

static void note_lost(evrec_broadcaster *b, const char *name, uint64_t n, const char *example)
{
	if (b->troubles != NULL) {
		troubles_add_lost(b->troubles, name, n, example);
		last_words_add(n);
	}
	if (example != NULL && b->lost_example[0] == '\0') {
		memcpy(b->lost_example, example, sizeof(b->lost_example));
	}
}

static bool wants_example(const evrec_broadcaster *b, const char *name)
{
	return b->lost_example[0] == '\0' || (b->troubles != NULL && troubles_want_example(b->troubles, name));
}

void broadcaster_tell_drop(evrec_broadcaster *b, const evrec_fields *event, const char *cause, uint64_t n)
{
	char example[TROUBLE_TEXT];

	if (event != NULL && wants_example(b, cause)) {
		trouble_show_event(event, example);
		hide_secrets(b, example);
		note_lost(b, cause, n, example);
	} else {
		note_lost(b, cause, n, NULL);
	}
	if (event != NULL) {
		broadcaster_call_on_drop(b, event, cause);
	}
}

void broadcaster_call_on_drop(evrec_broadcaster *b, const evrec_fields *event, const char *cause)
{
	bool busy = b->busy;
	evrec_event *copy;

	/* An event that on_drop itself records, and that is dropped, is only counted. */
	if (b->options.on_drop == NULL || b->dropping) {
		return;
	}
	copy = evrec_event_new(event);
	if (copy != NULL) {
		b->dropping = b->busy = true;
		b->options.on_drop(b->options.ctx, copy, cause);
		b->dropping = false;
		b->busy = busy;
		evrec_event_release(copy);
	}
}

void broadcaster_tell_refusal(evrec_broadcaster *b, const char *message)
{
	const char *name = evrec_code_name(EVREC_EINVALID);
	char example[TROUBLE_TEXT];

	if (wants_example(b, name)) {
		copy_hidden(b, message, example);
		note_lost(b, name, 1, example);
	} else {
		note_lost(b, name, 1, NULL);
	}
}

/* No thread could be started: poll writes instead, as it does in HAProxy at each start. */
static bool is_harmless(const evrec_broadcaster *b, const char *name)
{
	return b->options.drive != EVREC_DRIVE_THREAD && strcmp(name, "thread") == 0;
}

void broadcaster_tell_error(evrec_broadcaster *b, const char *message, const char *name, const char *sink)
{
	const bool harmless = is_harmless(b, name);
	bool busy = b->busy;
	char text[TROUBLE_TEXT];

	copy_hidden(b, message, text);
	/* A callback's error is no reason why a write waits or was lost. */
	if (sink != NULL && !harmless) {
		b->error_name = name;
		memcpy(b->error, text, sizeof(text));
	}
	if (b->troubles != NULL && !harmless) {
		troubles_add_error(b->troubles, name, text, sink);
		last_words_add(1);
	}
	if (b->options.on_error != NULL) {
		char whole[EVREC_SINK_NAME_SIZE + sizeof(((struct outbox_message *)0)->message)];

		(void)snprintf(whole, sizeof(whole), "%s%s%s", sink != NULL ? sink : "", sink != NULL ? ": " : "",
		               message);
		b->busy = true;
		b->options.on_error(b->options.ctx, whole, name);
		b->busy = busy;
	}
}

bool evrec_broadcaster_next_line(evrec_broadcaster *b, bool all, char text[EVREC_LINE_SIZE])
{
	uint64_t before;
	struct line line;

	if (b->troubles == NULL || (b->troubles->waiting == 0 && b->troubles->untold == 0)) {
		return false;
	}
	/* In a forked child that has recorded nothing, all troubles are its parent's. */
	if (b->fork_generation != sender_fork_generation()) {
		return false;
	}
	before = b->troubles->waiting + b->troubles->untold;
	if (!troubles_next_line(b->troubles, clock_coarse(b->options.clock), all, &line)) {
		return false;
	}
	last_words_subtract(before - b->troubles->waiting - b->troubles->untold);
	memcpy(text, line.text, sizeof(line.text));
	return true;
}

void evrec_broadcaster_not_told(evrec_broadcaster *b)
{
	if (b->troubles != NULL) {
		b->stats.untold += b->troubles->taken;
		last_words_add(b->troubles->taken);
		troubles_not_told(b->troubles);
	}
}

bool evrec_broadcaster_wants_place(const evrec_broadcaster *b)
{
	return b->troubles != NULL && troubles_want_place(b->troubles);
}

void evrec_broadcaster_set_place(evrec_broadcaster *b, const char *place)
{
	if (b->troubles != NULL) {
		troubles_set_place(b->troubles, place);
	}
}

/* If several sinks combine events by series, the first of them tells. */
static bool tells_of_series(const evrec_broadcaster *b, const struct pipeline *pipeline)
{
	for (size_t i = 0; i < b->watches.len; i++) {
		const evrec_watch *watch = b->watches.items[i];

		if (watch->phase == WATCH_RUNNING && watch->pipeline != NULL && pipeline_has_series(watch->pipeline)) {
			return watch->pipeline == pipeline;
		}
	}
	return false;
}

void broadcaster_offer(evrec_broadcaster *b, evrec_event *event)
{
	/* A watch that a callback starts is appended after these `n`: it gets later events only. */
	const size_t n = b->watches.len;

	for (size_t i = 0; i < n; i++) {
		evrec_watch *watch = b->watches.items[i];

		if (watch->phase == WATCH_RUNNING && watch->pipeline == NULL &&
		    (event == NULL || !watch_offer(watch, event))) {
			b->stats.watch_dropped++;
		}
	}
}

/* Only a busy broadcaster polls or records, so that callbacks can do no harm here. */
void broadcaster_tell_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event)
{
	evrec_broadcaster *b = ctx;
	evrec_event *copy;

	if (!b->copies || !tells_of_series(b, pipeline)) {
		return;
	}
	copy = evrec_event_new(event);
	if (b->broadcasting && b->told == NULL && copy != NULL) {
		b->told = copy;
		return;
	}
	broadcaster_offer(b, copy);
	evrec_event_release(copy);
}
