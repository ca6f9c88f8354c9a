#include "base/clock.h"
#include "exec/plugin.h"
#include "http/credentials.h"
#include "http/http_client.h"
#include "kubernetes/answer.h"
#include "kubernetes/request.h"
#include "kubernetes/verdict.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
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
};

static struct kubernetes *kubernetes_of(struct protocol *p)
{
	return (struct kubernetes *)p;
}

/* ---- the protocol ---- */

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
static void end(struct kubernetes *k, struct entry *entry, const evrec_answer *answer, bool timed_out)
{
	const struct kubernetes_try try = { entry->verb, entry->maybe_received != 0, entry->renamed,
		                            has_just_started(k, answer) };
	struct outcome outcome;

	kubernetes_outcome(&try, answer, &outcome);
	sender_answered(k->sender, entry, &outcome);
	sender_request_ended(k->sender, timed_out ? REQUEST_TIMED_OUT : kubernetes_result(answer), answer->retry_after);
}

static void on_done(void *owner, void *ctx, const struct http_response *response)
{
	struct kubernetes *k = owner;
	evrec_answer answer = { 0 };

	answer_read(&answer, response);
	if (!response->old_credentials) {
		judge_credentials(k, answer.status);
	}
	http_client_hide_token(k->client, answer.message);
	/* A connection that could not be made in time says nothing of the server's load. */
	end(k, ctx, &answer, response->timed_out && !response->unsent);
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
static bool begin(struct kubernetes *k, struct entry *entry, evrec_answer *answer)
{
	bool patch = entry->verb == VERB_PATCH;
	struct event_request how = { 0 };
	struct http_response response;
	struct http_request request;
	struct encoded encoded;
	evrec_error err = { 0 };
	bool sent = false;
	int code;

	if (!k->encode(entry->item, patch ? BODY_PATCH : BODY_CREATE, EVREC_CORE_V1, READER_SERVER, &encoded)) {
		refuse(answer, EVREC_ENOMEM, NULL);
		return false;
	}
	code = patch ? event_request_patch(&how, encoded.ns, encoded.name, &err)
	             : event_request_create(&how, encoded.ns, &err);
	if (code != 0) {
		refuse(answer, code, err.message);
	} else {
		request = (struct http_request){ how.method,   how.path,         how.content_type,
			                         encoded.body, encoded.body_len, entry };
		encoded.body = NULL;
		sent = http_client_send(k->client, &request, &response);
		if (!sent) {
			answer_read(answer, &response);
		}
	}
	mem_free(how.path);
	encoded_free(&encoded);
	return sent;
}

static void kubernetes_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct kubernetes *k = kubernetes_of(p);
	evrec_answer answer = { 0 };

	(void)n;
	k->sender = s;
	if (!begin(k, entries[0], &answer)) {
		end(k, entries[0], &answer, false);
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

static void wait_for_news(struct kubernetes *k, int64_t timeout)
{
	int64_t due = k->plugin == NULL ? INT64_MAX : plugin_next_step(k->plugin);
	int fds[2];
	size_t n = k->plugin == NULL ? 0 : plugin_descriptors(k->plugin, fds);

	http_client_wait_with(k->client, due < timeout ? due : timeout, fds, n);
}

static bool step_once(struct kubernetes *k)
{
	bool any = step_plugin(k);

	return http_client_step(k->client) || any;
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

static void kubernetes_wake(struct protocol *p)
{
	http_client_wake(kubernetes_of(p)->client);
}

static void kubernetes_free(struct protocol *p)
{
	plugin_free(kubernetes_of(p)->plugin);
	http_client_free(kubernetes_of(p)->client);
	mem_free(p);
}

static const struct protocol_ops kubernetes_ops = {
	.does_io = true,
	.ready = kubernetes_ready,
	.send = kubernetes_send,
	.step = kubernetes_step,
	.wake = kubernetes_wake,
	.init_library = http_global_init,
	.end_thread = http_end_thread,
	.free = kubernetes_free,
};

static struct http_options http_options_of(const evrec_kubernetes_options *options)
{
	return (struct http_options){
		.server = options->server,
		.token = options->token,
		.token_file = options->token_file,
		.ca = options->ca,
		.client_certificate = options->client_certificate,
		.client_key = options->client_key,
		.insecure_skip_tls_verify = options->insecure_skip_tls_verify,
		.accept = "application/json",
		.max_in_flight = options->max_in_flight,
		.timeout = options->timeout,
	};
}

struct protocol *kubernetes_protocol_new(const evrec_kubernetes_options *options, encode_func *encode, evrec_error *err)
{
	const struct http_events events = { on_done, on_warning };
	const struct http_options http = http_options_of(options);
	struct kubernetes *k;

	if (kubernetes_check_options(options, err) != 0) {
		return NULL;
	}
	k = mem_zalloc(sizeof(*k));
	if (k == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	k->base = (struct protocol){ &kubernetes_ops, 1, options->max_in_flight };
	k->encode = encode;
	k->client = http_client_new(&http, &events, k, err);
	if (k->client == NULL) {
		mem_free(k);
		return NULL;
	}
	return &k->base;
}

bool kubernetes_protocol_use(struct protocol *p, struct exec_command *command, evrec_clock *clock)
{
	struct kubernetes *k = kubernetes_of(p);

	k->plugin = plugin_new(command, clock);
	return k->plugin != NULL;
}

/* ---- the sink ---- */

struct kubernetes_sink {
	evrec_sink base;
	evrec_kubernetes_options options;
	char *strings; /* what `options` points to */
	struct exec_command *command;
};

void evrec_kubernetes_options_init(evrec_kubernetes_options *options)
{
	*options = (evrec_kubernetes_options){
		.max_in_flight = 32,
		.timeout = 10 * EVREC_SECOND,
	};
	evrec_sink_options_init(&options->common);
}

int kubernetes_check_options(const evrec_kubernetes_options *options, evrec_error *err)
{
	const struct http_options http = http_options_of(options);
	int code = http_check_options(&http, err);

	return code != 0 ? code : sink_check_options(&options->common, err);
}

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	struct kubernetes_sink *own = (struct kubernetes_sink *)sink;
	struct protocol *p = kubernetes_protocol_new(&own->options, write_encode, err);

	if (p != NULL && own->command != NULL && !kubernetes_protocol_use(p, own->command, evrec_clock_real())) {
		kubernetes_free(p);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	return p;
}

static void free_kind(evrec_sink *sink)
{
	mem_free(((struct kubernetes_sink *)sink)->strings);
	exec_command_release(((struct kubernetes_sink *)sink)->command);
}

/* Gathers the strings of `options` in one block, and makes it point there. NULL: no memory. */
static char *own_strings(evrec_kubernetes_options *options)
{
	evrec_str *strings[] = {
		&options->server,    &options->token, &options->token_file, &options->ca, &options->client_certificate,
		&options->client_key
	};
	const size_t n = sizeof(strings) / sizeof(strings[0]);
	size_t i, len = 0;
	char *block, *p;

	for (i = 0; i < n; i++) {
		len += strings[i]->len + 1;
	}
	block = p = mem_zalloc(len);
	for (i = 0; block != NULL && i < n; i++) {
		if (strings[i]->len != 0) {
			memcpy(p, strings[i]->data, strings[i]->len);
		}
		strings[i]->data = p;
		p += strings[i]->len + 1;
	}
	return block;
}

/* The token that the file holds now. NULL: an error. */
static char *read_token(evrec_str file, evrec_error *err)
{
	char *path = str_dup(file), *token;

	if (path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	token = token_file_read(path, err);
	mem_free(path);
	return token;
}

static evrec_sink *make_sink(const evrec_kubernetes_options *options, evrec_error *err)
{
	const struct exec_cluster cluster = { options->server, options->ca, options->insecure_skip_tls_verify };
	struct kubernetes_sink *sink = sink_new(sizeof(*sink), &options->common, err);

	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "kubernetes";
	sink->base.open = open_protocol;
	sink->base.free = free_kind;
	sink->options = *options;
	sink->options.common = sink->base.options; /* with strings of its own */
	sink->options.exec = NULL;
	if (options->exec != NULL) {
		sink->command = exec_command_new(options->exec, &cluster, err);
		if (sink->command == NULL) {
			evrec_sink_release(&sink->base);
			return NULL;
		}
	}
	sink->strings = own_strings(&sink->options);
	if (sink->strings == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	sink->base.secret = sink->options.token;
	return &sink->base;
}

evrec_sink *evrec_sink_kubernetes(const evrec_kubernetes_options *options, evrec_error *err)
{
	evrec_kubernetes_options own = *options;
	char *token = NULL;
	evrec_sink *sink;

	if (options->token.len != 0 && options->token_file.len != 0) {
		error_set(err, EVREC_EINVALID, "token: not together with token_file");
		return NULL;
	}
	if (options->exec != NULL && (options->token.len != 0 || options->token_file.len != 0)) {
		error_set(err, EVREC_EINVALID, "exec: not together with token or token_file");
		return NULL;
	}
	if (kubernetes_check_options(options, err) != 0) {
		return NULL;
	}
	if (options->token_file.len != 0) {
		token = read_token(options->token_file, err);
		if (token == NULL) {
			return NULL;
		}
		own.token = str_from(token);
	}
	sink = make_sink(&own, err);
	mem_free(token);
	return sink;
}
