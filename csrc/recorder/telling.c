/* Reports drops, refused calls and errors of a broadcaster: to callbacks, in lines, and in the results of a flush. */
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "recorder/broadcaster.h"
#include "sender/last_words.h"
#include "sender/sender.h"

static void hide_secrets(const struct hub *hub, char *text)
{
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_hide_secrets(hub->sinks.items[i]->pipeline, text);
	}
}

static void copy_hidden(const struct hub *hub, const char *text, char copy[TROUBLE_TEXT])
{
	utf8_copy(copy, TROUBLE_TEXT, str_from(text));
	hide_secrets(hub, copy);
}

static void note_lost(struct hub *hub, const char *name, uint64_t n, const char *example)
{
	if (hub->troubles != NULL) {
		troubles_add_lost(hub->troubles, name, n, example);
		last_words_add(n);
	}
	if (example != NULL && hub->lost_example[0] == '\0') {
		memcpy(hub->lost_example, example, sizeof(hub->lost_example));
	}
}

static bool wants_example(const struct hub *hub, const char *name)
{
	return hub->lost_example[0] == '\0' || (hub->troubles != NULL && troubles_want_example(hub->troubles, name));
}

void hub_tell_drop(struct hub *hub, const evrec_fields *event, const char *cause, uint64_t n)
{
	char example[TROUBLE_TEXT];

	if (event != NULL && wants_example(hub, cause)) {
		trouble_show_event(event, example);
		hide_secrets(hub, example);
		note_lost(hub, cause, n, example);
	} else {
		note_lost(hub, cause, n, NULL);
	}
	if (event != NULL) {
		hub_tell_on_drop(hub, event, cause);
	}
}

void hub_tell_on_drop(struct hub *hub, const evrec_fields *event, const char *cause)
{
	evrec_broadcaster *b = hub->user;
	evrec_event *copy;

	/* If on_drop itself records an event, and that is dropped, the drop is only counted. */
	if (hub->options.on_drop == NULL || (b != NULL && b->dropping)) {
		return;
	}
	if (hub->shared) {
		notices_add(&hub->notices, event, cause, NULL);
		return;
	}
	copy = evrec_event_new(event);
	if (copy != NULL) {
		handle_call_on_drop(b, copy, cause);
		evrec_event_release(copy);
	}
}

void hub_tell_refusal(struct hub *hub, const char *message)
{
	const char *name = evrec_code_name(EVREC_EINVALID);
	char example[TROUBLE_TEXT];

	if (wants_example(hub, name)) {
		copy_hidden(hub, message, example);
		note_lost(hub, name, 1, example);
	} else {
		note_lost(hub, name, 1, NULL);
	}
}

/* No thread could be started: poll writes instead, as it does in HAProxy at each start. */
static bool is_harmless(const struct hub *hub, const char *name)
{
	return hub->options.drive != EVREC_DRIVE_THREAD && strcmp(name, "thread") == 0;
}

void hub_tell_error(struct hub *hub, const char *message, const char *name, const char *sink)
{
	const bool harmless = is_harmless(hub, name);
	char text[TROUBLE_TEXT];

	copy_hidden(hub, message, text);
	/* An error of a callback does not explain why a write waits or was lost. */
	if (sink != NULL && !harmless) {
		hub->error_name = name;
		memcpy(hub->error, text, sizeof(text));
	}
	if (hub->troubles != NULL && !harmless) {
		troubles_add_error(hub->troubles, name, text, sink);
		last_words_add(1);
	}
	if (hub->options.on_error != NULL) {
		char whole[EVREC_SINK_NAME_SIZE + sizeof(((struct outbox_message *)0)->message)];

		(void)snprintf(whole, sizeof(whole), "%s%s%s", sink != NULL ? sink : "", sink != NULL ? ": " : "",
		               message);
		if (hub->shared) {
			notices_add(&hub->notices, NULL, name, whole);
		} else {
			handle_call_on_error(hub->user, whole, name);
		}
	}
}

/* In a forked child that has recorded nothing, all troubles are the parent's. */
static bool has_troubles(const struct hub *hub)
{
	return hub->troubles != NULL && (hub->troubles->waiting != 0 || hub->troubles->untold != 0) &&
	       hub->fork_generation == sender_fork_generation();
}

/* Out of line, its large frame costs nothing as long as there is no line. */
static __attribute__((noinline)) bool next_line(struct hub *hub, const evrec_clock *clock, bool all,
                                                char text[EVREC_LINE_SIZE])
{
	const uint64_t before = hub->troubles->waiting + hub->troubles->untold;
	struct line line;

	if (!troubles_next_line(hub->troubles, clock_coarse(clock), all, &line)) {
		return false;
	}
	last_words_subtract(before - hub->troubles->waiting - hub->troubles->untold);
	memcpy(text, line.text, sizeof(line.text));
	return true;
}

HOT bool evrec_broadcaster_next_line(evrec_broadcaster *b, bool all, char text[EVREC_LINE_SIZE])
{
	struct hub *hub = b->hub;
	bool found;

	if (hub->troubles == NULL) {
		return false;
	}
	hub_lock(hub);
	found = has_troubles(hub) && next_line(hub, b->options.clock, all, text);
	hub_unlock(hub);
	return found;
}

void evrec_broadcaster_not_told(evrec_broadcaster *b)
{
	struct hub *hub = b->hub;

	if (hub->troubles != NULL) {
		hub_lock(hub);
		hub->stats.untold += hub->troubles->taken;
		last_words_add(hub->troubles->taken);
		troubles_not_told(hub->troubles);
		hub_unlock(hub);
	}
}

bool evrec_broadcaster_wants_place(const evrec_broadcaster *b)
{
	struct hub *hub = b->hub;
	bool wants = false;

	if (hub->troubles != NULL) {
		hub_lock(hub);
		wants = troubles_want_place(hub->troubles);
		hub_unlock(hub);
	}
	return wants;
}

void evrec_broadcaster_set_place(evrec_broadcaster *b, const char *place)
{
	struct hub *hub = b->hub;

	if (hub->troubles != NULL) {
		hub_lock(hub);
		troubles_set_place(hub->troubles, place);
		hub_unlock(hub);
	}
}
