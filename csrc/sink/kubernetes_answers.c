/* Acts on an API server's answers: an answer decides about its write, and about the credentials. */
#include "base/clock.h"
#include "kubernetes/answer.h"
#include "sender/sender.h"
#include "sink/kubernetes_inner.h"

#define JUST_STARTED (10 * EVREC_SECOND)
#define KEPT_ANSWERS 2 /* a connection with so many answers counts as kept */

/*
 * For some tenths of a second after its port opens, kube-apiserver has not read its roles yet, and answers 403. So
 * after a request without an answer, and after a new connection replaced a kept one, a 403 is retried for a while, but
 * not after the server has taken a write that was begun since then: without its roles it would have forbidden that
 * write, too. Servers and gateways may close connections every few seconds, at random (--goaway-chance) or after some
 * number of requests.
 */
static bool has_just_started(struct kubernetes *k, int64_t begun, const evrec_answer *answer)
{
	int64_t now = clock_monotonic(evrec_clock_real());
	unsigned connections = http_client_connections(k->client);

	if (answer->status == 0 || (connections != k->connections && k->answers >= KEPT_ANSWERS)) {
		k->started = now;
		k->started_until = now + JUST_STARTED;
	} else if (kubernetes_is_success(answer->status) && begun > k->started) {
		k->started_until = now;
	}
	if (connections != k->connections) {
		k->connections = connections;
		k->answers = 0;
	}
	k->answers += answer->status != 0;
	return now < k->started_until;
}

static void judge_credentials(struct kubernetes *k, int status)
{
	if (status == 401) {
		http_client_reload_credentials(k->client);
	}
	if (k->plugin != NULL && status == 401) {
		plugin_refused(k->plugin);
	} else if (k->plugin != NULL && status != 0 && status < 500) {
		plugin_accepted(k->plugin);
	}
}

/* A certificate that is no certificate, or of another key, shows when libcurl first uses it: the plugin is run again. */
static void judge_certificate(struct kubernetes *k, const struct http_response *response)
{
	evrec_error err;

	if (response->bad_certificate && k->plugin != NULL && plugin_unusable(k->plugin, response->message, &err)) {
		outbox_report(sender_outbox(k->sender), "unauthorized", err.message);
	}
}

/* Requests carry one write each, so the answer to the request is the answer to the write. */
static void end(struct kubernetes *k, struct sent *sent, const struct kubernetes_try *try, const evrec_answer *answer,
                bool timed_out)
{
	struct entry *entry = sent->entry;
	struct outcome outcome;

	sent->next = k->free;
	k->free = sent;
	if (k->resume != NULL && entry->verb == VERB_PATCH) {
		resume_patched(k->resume, entry);
	}
	kubernetes_outcome(try, answer, &outcome);
	sender_answered(k->sender, entry, &outcome);
	sender_request_ended(k->sender, timed_out ? REQUEST_TIMED_OUT : kubernetes_result(answer), answer->retry_after);
}

void kubernetes_answered(struct kubernetes *k, struct sent *sent, evrec_answer *answer, bool lacks_api, bool timed_out)
{
	const struct entry *entry = sent->entry;
	const struct kubernetes_try try = { entry->verb, entry_may_exist(entry), entry->renamed,
		                            has_just_started(k, sent->begun, answer) };
	const enum api_news news = kubernetes_api_news(&try, answer, lacks_api);

	if (!fallback_takes(&k->fallback, sender_outbox(k->sender), sent, news, answer)) {
		end(k, sent, &try, answer, timed_out);
	}
}

/* The answer to a list. */
static void listed(struct kubernetes *k, void *ctx, const struct http_response *response)
{
	evrec_answer answer = { .status = response->status };

	if (!kubernetes_is_success(response->status)) {
		answer_read(&answer, response);
		http_client_hide_secrets(k->client, answer.message);
	}
	if (!response->old_credentials) {
		judge_credentials(k, answer.status);
		judge_certificate(k, response);
	}
	resume_answered(k->resume, ctx, response, &answer, has_just_started(k, 0, &answer));
}

static void on_done(void *owner, void *ctx, const struct http_response *response)
{
	struct kubernetes *k = owner;
	evrec_answer answer = { 0 };

	if (k->resume != NULL && resume_is_own(k->resume, ctx)) {
		listed(k, ctx, response);
		return;
	}
	answer_read(&answer, response);
	if (!response->old_credentials) {
		judge_credentials(k, answer.status);
		judge_certificate(k, response);
	}
	http_client_hide_secrets(k->client, answer.message);
	/* A timeout of connecting does not count as one of the server's load, nor does the header of a refusal. */
	kubernetes_answered(k, ctx, &answer, answer_lacks_api(response),
	                    response->timed_out && !response->unsent && answer.status == 0);
}

static void on_warning(void *owner, const char *message)
{
	struct kubernetes *k = owner;

	outbox_report(sender_outbox(k->sender), "unauthorized", message);
}

const struct http_events kubernetes_events = { .done = on_done, .warn = on_warning };
