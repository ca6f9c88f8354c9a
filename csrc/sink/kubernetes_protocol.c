#include "base/clock.h"
#include "kubernetes/answer.h"
#include "kubernetes/request.h"
#include "sender/sender.h"
#include "sink/kubernetes_inner.h"

#include <stdio.h>

static struct kubernetes *kubernetes_of(struct protocol *p)
{
	return (struct kubernetes *)p;
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
		sent->begun = clock_monotonic(evrec_clock_real());
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
		kubernetes_answered(k, sent, &answer, false, false);
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

static bool has_credentials(struct kubernetes *k)
{
	return k->plugin == NULL || plugin_ready(k->plugin);
}

static bool kubernetes_ready(struct protocol *p)
{
	struct kubernetes *k = kubernetes_of(p);

	return has_credentials(k) && http_client_has_room(k->client);
}

/* True: there are new credentials, or the plugin has failed. */
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
			(void)plugin_unusable(k->plugin, fault.message, &err);
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

/* The credentials are asked for only if a list is: else a plugin would run while there is nothing to send. */
static bool may_list(struct kubernetes *k)
{
	return resume_lists(k->resume) && has_credentials(k);
}

/* True: held entries wait to be sent. */
static bool step_resume(struct kubernetes *k)
{
	const struct outcome again = { .verdict = VERDICT_AGAIN };
	struct entry *entry;
	bool any = false;

	if (k->resume != NULL) {
		resume_step(k->resume, k->client, may_list(k));
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
	const int64_t resume = k->resume == NULL ? INT64_MAX : resume_next_step(k->resume, may_list(k));

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
		k->client = http_client_new(&http, &kubernetes_events, k, err);
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
