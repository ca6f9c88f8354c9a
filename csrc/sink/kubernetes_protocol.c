#include "base/clock.h"
#include "exec/plugin.h"
#include "http/credentials.h"
#include "http/http_client.h"
#include "kubernetes/answer.h"
#include "kubernetes/request.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/kubernetes_fallback.h"
#include "sink/kubernetes_resume.h"
#include "sink/sink.h"
#include "sink/write.h"

#include <stdio.h>

#define JUST_STARTED (10 * EVREC_SECOND)
#define KEPT_ANSWERS 2 /* a connection that has given so many was kept */

/* Writes events to an API server. */
struct kubernetes {
	struct protocol base;
	struct http_client *client;
	struct plugin *plugin; /* gets the credentials; NULL: they were given */
	encode_func *encode;
	struct sender *sender; /* the one that runs a send or a step */
	unsigned connections;  /* of the client, at the last answer */
	unsigned answers;      /* since that number changed */
	int64_t started_until; /* until then the server may have just started; monotonic ns, 0: it has not */
	struct fallback fallback;
	struct sent *requests;  /* max_in_flight of them */
	struct sent *free;      /* those of them that are not under way */
	struct resume *resume;  /* NULL: series begin anew */
	evrec_error unresolved; /* of resolved.h, to be told */
};

static struct kubernetes *kubernetes_of(struct protocol *p)
{
	return (struct kubernetes *)p;
}

/* ---- what an answer means ---- */

/*
 * For some tenths of a second after its port opens, kube-apiserver has not read its roles yet. So after a request without
 * an answer, and after a new connection took the place of one that had been kept, a 403 is doubted for a while.
 */
static bool has_just_started(struct kubernetes *k, const evrec_answer *answer)
{
	int64_t now = clock_monotonic(evrec_clock_real());
	unsigned connections = http_client_connections(k->client);

	if (answer->status == 0 || (connections != k->connections && k->answers >= KEPT_ANSWERS)) {
		k->started_until = now + JUST_STARTED;
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

/* Requests carry one write each, so the answer to the request is the answer to the write. */
static void end(struct kubernetes *k, struct sent *sent, const struct kubernetes_try *try, const evrec_answer *answer,
                bool timed_out)
{
	struct entry *entry = sent->entry;
	struct outcome outcome;

	sent->next = k->free;
	k->free = sent;
	kubernetes_outcome(try, answer, &outcome);
	sender_answered(k->sender, entry, &outcome);
	sender_request_ended(k->sender, timed_out ? REQUEST_TIMED_OUT : kubernetes_result(answer), answer->retry_after);
}

static void answered(struct kubernetes *k, struct sent *sent, evrec_answer *answer, bool lacks_api, bool timed_out)
{
	const struct entry *entry = sent->entry;
	const struct kubernetes_try try = { entry->verb, entry->maybe_received != 0 || entry->again, entry->renamed,
		                            has_just_started(k, answer) };
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
	}
	resume_answered(k->resume, ctx, response, &answer, has_just_started(k, &answer));
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
	}
	http_client_hide_secrets(k->client, answer.message);
	/* A connection that could not be made in time says nothing of the server's load. */
	answered(k, ctx, &answer, answer_lacks_api(response), response->timed_out && !response->unsent);
}

static void on_warning(void *owner, const char *message)
{
	struct kubernetes *k = owner;

	outbox_report(sender_outbox(k->sender), "unauthorized", message);
}

/* Answers a write that cannot be sent as the server would refuse it. */
static void refuse(evrec_answer *answer, int code, const char *message)
{
	if (code == EVREC_EINVALID) {
		answer->status = 400;
		(void)snprintf(answer->message, sizeof(answer->message), "not sent: %.200s", message);
	} else {
		answer->unsent = true;
		(void)snprintf(answer->message, sizeof(answer->message), "no memory for the request");
	}
}

/* False: it was not sent, and `answer` says why. */
static bool begin(struct kubernetes *k, struct sent *sent, evrec_answer *answer)
{
	const struct entry *entry = sent->entry;
	const bool patch = entry->verb == VERB_PATCH;
	const enum evrec_api api = fallback_api(&k->fallback, sent);
	struct event_request how = { 0 };
	struct http_response response;
	struct http_request request;
	struct encoded encoded;
	evrec_error err = { 0 };
	bool begun = false;
	int code;

	if (!k->encode(entry->item, patch ? BODY_PATCH : BODY_CREATE, api, READER_SERVER, &encoded)) {
		refuse(answer, EVREC_ENOMEM, NULL);
		return false;
	}
	sent->api = encoded.api;
	code = patch ? event_request_patch(&how, encoded.api, encoded.ns, encoded.name, &err)
	             : event_request_create(&how, encoded.api, encoded.ns, &err);
	if (code != 0) {
		refuse(answer, code, err.message);
	} else {
		request = (struct http_request){ .method = how.method,
			                         .path = how.path,
			                         .content_type = how.content_type,
			                         .body = encoded.body,
			                         .body_len = encoded.body_len,
			                         .ctx = sent };
		encoded.body = NULL;
		begun = http_client_send(k->client, &request, &response);
		if (!begun) {
			answer_read(answer, &response);
		}
	}
	mem_free(how.path);
	encoded_free(&encoded);
	return begun;
}

static void send_one(struct kubernetes *k, struct sent *sent)
{
	evrec_answer answer = { 0 };

	if (!begin(k, sent, &answer)) {
		answered(k, sent, &answer, false, false);
	}
}

/* True: it is a create that is held, or that patches an event of an earlier process instead. */
static bool resumes(struct kubernetes *k, struct entry *entry)
{
	struct outcome outcome = { 0 };

	switch (resume_ask(k->resume, k->sender, entry, k->fallback.choice.api, k->fallback.choice.falls_back,
	                   &outcome)) {
	case RESUME_SEND:
		return false;
	case RESUME_ADOPT:
		sender_answered(k->sender, entry, &outcome);
		break;
	case RESUME_HOLD:
		break;
	}
	sender_request_ended(k->sender, REQUEST_OTHER, 0);
	return true;
}

static void kubernetes_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct kubernetes *k = kubernetes_of(p);
	struct sent *sent = k->free;

	(void)n;
	k->sender = s;
	resolved_tell(&k->unresolved, sender_outbox(s));
	if (k->resume != NULL && resumes(k, entries[0])) {
		return;
	}
	k->free = sent->next;
	*sent = (struct sent){ .entry = entries[0] };
	send_one(k, sent);
}

static void send_again(struct kubernetes *k)
{
	struct sent *sent;

	while ((sent = fallback_next(&k->fallback)) != NULL) {
		send_one(k, sent);
	}
}

static bool kubernetes_ready(struct protocol *p)
{
	struct kubernetes *k = kubernetes_of(p);

	return k->plugin == NULL || plugin_ready(k->plugin);
}

/* True: there are new credentials, or there is no hope for some. */
static bool step_plugin(struct kubernetes *k)
{
	struct exec_credential new;
	enum plugin_news news;
	evrec_error err, fault;

	if (k->plugin == NULL) {
		return false;
	}
	news = plugin_step(k->plugin, &new, &err);
	if (news == PLUGIN_CREDENTIAL) {
		if (http_client_set_credentials(k->client, str_from(new.token), str_from(new.certificate),
		                                str_from(new.key), &fault) != 0) {
			plugin_unusable(k->plugin, fault.message, &err);
			news = PLUGIN_FAILED;
		} else if (new.certificate != NULL) {
			k->answers = 0; /* the next connection says nothing of the server */
		}
		exec_credential_destroy(&new);
	}
	if (news == PLUGIN_FAILED) {
		outbox_report(sender_outbox(k->sender), "unauthorized", err.message);
	}
	return news != PLUGIN_NO_NEWS;
}

/* True: what was held waits to be sent. */
static bool step_resume(struct kubernetes *k)
{
	const struct outcome again = { .verdict = VERDICT_AGAIN };
	struct entry *entry;
	bool any = false;

	if (k->resume != NULL) {
		resume_step(k->resume, k->client, kubernetes_ready(&k->base));
		while ((entry = resume_take_held(k->resume)) != NULL) {
			sender_answered(k->sender, entry, &again);
			any = true;
		}
	}
	return any;
}

static int64_t next_step(struct kubernetes *k)
{
	const int64_t plugin = k->plugin == NULL ? INT64_MAX : plugin_next_step(k->plugin);
	const int64_t resume = k->resume == NULL ? INT64_MAX : resume_next_step(k->resume, kubernetes_ready(&k->base));

	return plugin < resume ? plugin : resume;
}

static void wait_for_news(struct kubernetes *k, int64_t timeout)
{
	const int64_t due = next_step(k);
	int fds[2];
	size_t n = k->plugin == NULL ? 0 : plugin_descriptors(k->plugin, fds);

	http_client_wait_with(k->client, due < timeout ? due : timeout, fds, n);
}

static bool step_once(struct kubernetes *k)
{
	bool any = step_plugin(k);

	any = step_resume(k) || any;
	any = http_client_step(k->client) || any;
	send_again(k);
	return any;
}

static void kubernetes_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	struct kubernetes *k = kubernetes_of(p);

	k->sender = s;
	if (!step_once(k) && timeout > 0) {
		wait_for_news(k, timeout);
		(void)step_once(k);
	}
}

static enum evrec_api kubernetes_api(struct protocol *p)
{
	return kubernetes_of(p)->fallback.choice.api;
}

static void kubernetes_wake(struct protocol *p)
{
	http_client_wake(kubernetes_of(p)->client);
}

static void kubernetes_free(struct protocol *p)
{
	plugin_free(kubernetes_of(p)->plugin);
	http_client_free(kubernetes_of(p)->client);
	resume_free(kubernetes_of(p)->resume);
	mem_free(kubernetes_of(p)->requests);
	mem_free(p);
}

static const struct protocol_ops kubernetes_ops = {
	.does_io = true,
	.ready = kubernetes_ready,
	.send = kubernetes_send,
	.step = kubernetes_step,
	.wake = kubernetes_wake,
	.api = kubernetes_api,
	.init_library = http_global_init,
	.end_thread = http_end_thread,
	.free = kubernetes_free,
};

static bool make_requests(struct kubernetes *k)
{
	k->requests = mem_zalloc(k->base.max_in_flight * sizeof(*k->requests));
	for (unsigned i = 0; k->requests != NULL && i < k->base.max_in_flight; i++) {
		k->requests[i].next = k->free;
		k->free = &k->requests[i];
	}
	return k->requests != NULL;
}

struct protocol *kubernetes_protocol_new(const evrec_kubernetes_options *options, encode_func *encode, evrec_error *err)
{
	const struct http_events events = { .done = on_done, .warn = on_warning };
	const struct http_options http = kubernetes_http_options(options);
	struct kubernetes *k;

	if (kubernetes_check_options(options, err) != 0) {
		return NULL;
	}
	k = mem_zalloc(sizeof(*k));
	if (k == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	k->base = (struct protocol){ .ops = &kubernetes_ops, .max_batch = 1, .max_in_flight = options->max_in_flight };
	k->encode = encode;
	k->fallback.choice = (struct api_choice){ .api = sink_api(&options->common),
		                                  .falls_back = options->common.api == EVREC_SINK_AUTO };
	k->resume = options->resume ? resume_new(options) : NULL;
	if (!make_requests(k) || (options->resume && k->resume == NULL)) {
		error_set(err, EVREC_ENOMEM, "no memory");
	} else {
		k->client = http_client_new(&http, &events, k, err);
	}
	if (k->client == NULL) {
		kubernetes_free(&k->base);
		return NULL;
	}
	return &k->base;
}

bool kubernetes_protocol_use(struct protocol *p, struct exec_command *command, evrec_clock *clock)
{
	return (kubernetes_of(p)->plugin = plugin_new(command, clock)) != NULL;
}

void kubernetes_protocol_keep_token_folder(struct protocol *p, int folder)
{
	http_client_keep_token_folder(kubernetes_of(p)->client, folder);
}

bool kubernetes_protocol_keep_addresses(struct protocol *p, const struct resolved *resolved)
{
	struct kubernetes *k = kubernetes_of(p);

	return resolved_use(resolved, k->client, &k->unresolved);
}
