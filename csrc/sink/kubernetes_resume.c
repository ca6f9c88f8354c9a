#include "event/event.h"
#include "sink/resume_inner.h"
#include "sink/resume_instances.h"
#include "sink/write.h"

#include <stdio.h>

#define PAGE_LIMIT 500

struct resume *resume_new(const evrec_kubernetes_options *options)
{
	const evrec_series_options *series = &options->common.series;
	struct resume *r = mem_zalloc(sizeof(*r));

	if (r == NULL) {
		return NULL;
	}
	r->instances = resume_instances_copy(options->resume_instances, options->resume_instances_len);
	r->instances_len = options->resume_instances_len;
	if (__builtin_add_overflow(series->refresh_interval, series->finish_time, &r->active_for)) {
		r->active_for = INT64_MAX;
	}
	if (!resume_found_init(&r->found, series) || r->instances == NULL) {
		resume_free(r);
		return NULL;
	}
	return r;
}

void resume_free(struct resume *r)
{
	if (r == NULL) {
		return;
	}
	for (size_t i = 0; i < r->listings_len; i++) {
		mem_free(r->listings[i].controller);
		mem_free(r->listings[i].instance);
		buf_free(&r->listings[i].token);
	}
	resume_found_destroy(&r->found);
	mem_free(r->instances);
	mem_free(r->held);
	mem_free(r);
}

/* ---- writes ---- */

static struct listing *find_listing(struct resume *r, const evrec_fields *event)
{
	for (size_t i = 0; i < r->listings_len; i++) {
		struct listing *l = &r->listings[i];

		if (str_eq(str_from(l->controller), event->controller) &&
		    str_eq(str_from(l->instance), event->instance)) {
			return l;
		}
	}
	return NULL;
}

/* NULL: no memory. */
static struct listing *add_listing(struct resume *r, const evrec_fields *event, enum evrec_api api, bool falls_back)
{
	struct listing *l = &r->listings[r->listings_len];
	const int64_t now = mono_now(r);

	*l = (struct listing){ .resume = r,
		               .controller = str_dup(event->controller),
		               .instance = str_dup(event->instance),
		               .api = api,
		               .falls_back = falls_back,
		               .limit = PAGE_LIMIT,
		               .due = now,
		               .deadline = time_after(now, GIVE_UP_AFTER) };
	if (l->controller == NULL || l->instance == NULL) {
		mem_free(l->controller);
		mem_free(l->instance);
		return NULL;
	}
	r->listings_len++;
	return l;
}

static bool hold(struct resume *r, struct entry *entry)
{
	if (r->held_len == r->held_cap) {
		const size_t cap = r->held_cap == 0 ? 32 : 2 * r->held_cap;
		struct entry **held = mem_realloc(r->held, cap * sizeof(struct entry *));

		if (held == NULL) {
			return false;
		}
		r->held = held;
		r->held_cap = cap;
	}
	r->held[r->held_len++] = entry;
	return true;
}

struct entry *resume_take_held(struct resume *r)
{
	if (r->ended && r->held_taken < r->held_len) {
		return r->held[r->held_taken++];
	}
	if (r->ended) {
		r->ended = false;
		r->held_taken = r->held_len = 0;
	}
	return NULL;
}

static bool is_full(struct resume *r)
{
	char message[160];

	if (r->listings_len < LISTINGS_MAX) {
		return false;
	}
	if (!r->told_full) {
		r->told_full = true;
		(void)snprintf(message, sizeof(message),
		               "resume: more than %d controllers and instances; the series of the others begin anew",
		               LISTINGS_MAX);
		outbox_report(sender_outbox(r->sender), "resume", message);
	}
	return true;
}

/* Whether the events of a listing may show what they were before a patch that is sent or answered now. */
static bool has_begun(const struct listing *l)
{
	return l->state == LISTING_ASKED || (l->state == LISTING_DUE && l->token.len != 0);
}

void resume_patched(struct resume *r, const struct entry *entry)
{
	evrec_fields event;
	const struct listing *l;

	if (r->listings_len == 0) {
		return;
	}
	event = write_fields(entry->item, BODY_WHOLE);
	l = find_listing(r, &event);
	if (l != NULL) {
		resume_found_patched(&r->found, &event, has_begun(l));
	}
}

enum resume_answer resume_ask(struct resume *r, struct sender *s, struct entry *entry, enum evrec_api api,
                              bool falls_back, struct outcome *outcome)
{
	evrec_fields event;
	struct listing *l;

	r->sender = s;
	if (entry->verb == VERB_PATCH) {
		resume_patched(r, entry);
		return RESUME_SEND;
	}
	if (entry->maybe_received != 0 || outbox_is_restored(entry)) {
		return RESUME_SEND;
	}
	event = write_fields(entry->item, BODY_CREATE);
	l = find_listing(r, &event);
	if (l == NULL && !r->forbidden && !is_full(r)) {
		l = add_listing(r, &event, api, falls_back);
	}
	if (l == NULL) {
		return RESUME_SEND;
	}
	if (l->state != LISTING_OVER) {
		return hold(r, entry) ? RESUME_HOLD : RESUME_SEND;
	}
	return resume_found_adopt(&r->found, &event, mono_now(r), outcome) ? RESUME_ADOPT : RESUME_SEND;
}
