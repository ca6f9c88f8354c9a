#include "base/utf8.h"
#include "event/event.h"
#include "kubernetes/answer.h"
#include "kubernetes/request.h"
#include "kubernetes/verdict.h"
#include "sink/resume_inner.h"
#include "sink/resume_instances.h"

#include <stdio.h>

#define PAGE_BYTES ((size_t)4 * 1024 * 1024)
#define RETRY_FIRST (EVREC_SECOND / 4)
#define RETRY_MAX (2 * EVREC_SECOND)
#define SPOOL_LOOK (EVREC_SECOND / 50)
#define MESSAGE_SHOWN 140 /* bytes of an answer's message in a message */

/* ---- a page ---- */

static bool takes_over(const struct listing *l, evrec_str instance)
{
	return str_eq(str_from(l->instance), instance) ||
	       resume_instances_match(l->resume->instances, l->resume->instances_len, instance);
}

static bool on_event(void *ctx, const evrec_fields *event, const struct event_item *item)
{
	struct listing *l = ctx;
	evrec_fields mine = *event;
	const int64_t now = evrec_clock_now(sender_clock(l->resume->sender));

	(void)item;
	if (event->event_time == EVREC_UNSET || !str_eq(event->controller, str_from(l->controller)) ||
	    !takes_over(l, event->instance) || time_since(now, resume_found_last(event)) > l->resume->active_for) {
		return true;
	}
	mine.instance = str_from(l->instance);
	return resume_found_add(&l->resume->found, &mine, l, mono_now(l->resume));
}

/* ---- the end of a listing ---- */

static void over(struct listing *l)
{
	l->state = LISTING_OVER;
	l->resume->ended = true;
}

static void give_up(struct listing *l, const char *why)
{
	char message[512];

	(void)snprintf(message, sizeof(message),
	               "resume: the events of %.128s were not listed (%s); its series begin anew", l->controller, why);
	outbox_report(sender_outbox(l->resume->sender), "resume", message);
	over(l);
}

/* A 403 holds for all controllers: no further listing is made. */
static void forbid(struct listing *l)
{
	if (!l->resume->forbidden) {
		l->resume->forbidden = true;
		outbox_report(
			sender_outbox(l->resume->sender), "forbidden",
			l->api == EVREC_CORE_V1 && !l->falls_back
				? "resume: listing events is forbidden (list events); series begin anew"
				: "resume: listing events is forbidden (list events.events.k8s.io); series begin anew");
	}
	over(l);
}

static void finish(struct listing *l)
{
	resume_found_bring(&l->resume->found, l, sender_outbox(l->resume->sender));
	over(l);
}

/* ---- answers ---- */

static void start_over(struct listing *l, int64_t now)
{
	buf_clear(&l->token);
	l->state = LISTING_DUE;
	l->due = now;
	l->tries = 0;
}

static void retry(struct listing *l, const evrec_answer *answer, int64_t now)
{
	int64_t delay = l->tries < 4 ? RETRY_FIRST << l->tries : RETRY_MAX;

	if (answer->retry_after > delay) {
		delay = answer->retry_after < GIVE_UP_AFTER ? answer->retry_after : GIVE_UP_AFTER;
	}
	l->tries++;
	l->state = LISTING_DUE;
	l->due = time_after(now, delay < RETRY_MAX || answer->retry_after != 0 ? delay : RETRY_MAX);
}

static void describe(struct listing *l, const evrec_answer *answer)
{
	const int shown = (int)utf8_floor(str_from(answer->message), MESSAGE_SHOWN);

	if (answer->status == 0) {
		(void)snprintf(l->problem, sizeof(l->problem), "%.*s", shown, answer->message);
	} else {
		(void)snprintf(l->problem, sizeof(l->problem), "%d: %.*s", answer->status, shown, answer->message);
	}
}

/* Whether the same request would fail again. */
static bool is_final(int status)
{
	return status >= 300 && status < 500 && status != 401 && status != 403 && status != 408 && status != 409 &&
	       status != 429;
}

static void read_page(struct listing *l, const struct http_response *response, int64_t now)
{
	l->problem[0] = '\0';
	if (!event_list_from_json(response->body, l->api, on_event, l, &l->token, NULL)) {
		give_up(l, "no list of events, or no memory");
	} else if (l->token.len == 0) {
		finish(l);
	} else {
		l->state = LISTING_DUE;
		l->due = now;
		l->tries = 0;
	}
}

/* The page was longer than the client accepts: asks again for fewer events. */
static void shorten_page(struct listing *l, int64_t now)
{
	if (l->limit == 1) {
		give_up(l, "a page of 1 event is longer than 4 MiB");
		return;
	}
	l->limit = l->limit < 4 ? 1 : l->limit / 4;
	l->state = LISTING_DUE;
	l->due = now;
}

void resume_answered(struct resume *r, void *ctx, const struct http_response *response, const evrec_answer *answer,
                     bool just_started)
{
	struct listing *l = ctx;
	const bool forbidden = answer->status == 403 && !just_started;
	const int64_t now = mono_now(r);

	if (l->state != LISTING_ASKED) {
		return;
	}
	if (kubernetes_is_success(answer->status)) {
		read_page(l, response, now);
		return;
	}
	describe(l, answer);
	if (response->too_long && kubernetes_is_success(response->cut_status)) {
		shorten_page(l, now);
	} else if (answer->status == 410 && !l->restarted) {
		l->restarted = true;
		start_over(l, now);
	} else if ((forbidden || answer->status == 404) && l->falls_back && l->api == EVREC_EVENTS_V1) {
		l->api = EVREC_CORE_V1;
		start_over(l, now);
	} else if (forbidden) {
		forbid(l);
	} else if (is_final(answer->status)) {
		give_up(l, l->problem);
	} else {
		retry(l, answer, now);
	}
}

bool resume_is_own(const struct resume *r, const void *ctx)
{
	for (size_t i = 0; i < r->listings_len; i++) {
		if (ctx == &r->listings[i]) {
			return true;
		}
	}
	return false;
}

/* ---- requests ---- */

/* Of the next page. NULL: no memory. */
static char *make_path(struct listing *l)
{
	const char *field = l->api == EVREC_CORE_V1 ? "reportingComponent" : "reportingController";
	struct buf selector = { 0 };
	struct event_list list = { .api = l->api, .limit = l->limit, .token = buf_str(&l->token) };
	char *path = NULL;

	buf_printf(&selector, "%s=%s", field, l->controller);
	list.selector = buf_str(&selector);
	if (!selector.failed) {
		(void)event_list_path(&list, &path, NULL);
	}
	buf_free(&selector);
	return path;
}

static void ask(struct listing *l, struct http_client *client, int64_t now)
{
	struct http_request request = {
		.method = "GET", .content_type = "application/json", .ctx = l, .max_answer = PAGE_BYTES
	};
	char *path = make_path(l);
	evrec_answer answer = { 0 };
	struct http_response response;
	bool begun = false;

	request.path = path;
	if (path == NULL) {
		(void)snprintf(answer.message, sizeof(answer.message), "no memory");
	} else {
		begun = http_client_send(client, &request, &response);
		if (!begun) {
			answer_read(&answer, &response);
		}
	}
	mem_free(path);
	l->state = LISTING_ASKED;
	if (!begun) {
		describe(l, &answer);
		retry(l, &answer, now);
	}
}

/* Why a listing has timed out. */
static const char *delay_of(const struct listing *l)
{
	if (l->problem[0] != '\0') {
		return l->problem;
	}
	return l->token.len != 0 ? "it takes longer than 10 s" : "no answer within 10 s";
}

bool resume_lists(const struct resume *r)
{
	for (size_t i = 0; i < r->listings_len; i++) {
		if (r->listings[i].state != LISTING_OVER) {
			return true;
		}
	}
	return false;
}

void resume_step(struct resume *r, struct http_client *client, bool ready)
{
	for (size_t i = 0; i < r->listings_len; i++) {
		const int64_t now = mono_now(r);
		struct listing *l = &r->listings[i];

		if (l->state == LISTING_OVER) {
			continue;
		}
		if (now >= l->deadline) {
			give_up(l, delay_of(l));
		} else if (l->state == LISTING_DUE && ready && now >= l->due &&
		           !outbox_awaits_rows(sender_outbox(r->sender))) {
			ask(l, client, now);
		}
	}
}

int64_t resume_next_step(const struct resume *r, bool ready)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < r->listings_len; i++) {
		const struct listing *l = &r->listings[i];
		const int64_t now = mono_now(r);
		int64_t wait = time_since(l->deadline, now);

		if (l->state == LISTING_DUE && ready && time_since(l->due, now) < wait) {
			wait = time_since(l->due, now);
			wait = wait < SPOOL_LOOK ? SPOOL_LOOK : wait;
		}
		if (l->state != LISTING_OVER && wait < next) {
			next = wait;
		}
	}
	return next;
}
