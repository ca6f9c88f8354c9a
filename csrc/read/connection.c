#include "read/connection.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "exec/plugin.h"
#include "http/http_client.h"
#include "kubernetes/answer.h"
#include "sink/sink.h"

#include <stdio.h>

#define BODY_MAX ((size_t)16 * 1024 * 1024)
#define WAIT_MAX EVREC_SECOND

enum connection_state { IDLE, DUE, ASKED };

struct connection_inner {
	enum connection_state state;
	struct http_client *client;
	struct plugin *plugin; /* gets the credentials; NULL: they were given */
	char *path;
	int64_t timeout;
	bool refused; /* a 401 came to this path */
	bool grown;   /* bytes came since the last step */
	bool ended;
	uintptr_t number; /* of the last request: answers to others are forgotten */
};

/* ---- answers ---- */

static bool is_current(const struct connection_inner *in, const void *ctx)
{
	return in->state == ASKED && (uintptr_t)ctx == in->number;
}

static bool on_chunk(void *owner, void *ctx, evrec_str bytes)
{
	struct connection *c = owner;

	if (!is_current(c->inner, ctx)) {
		return false;
	}
	if (bytes.len > BODY_MAX - c->body.len) {
		c->too_long = true;
		return false;
	}
	buf_put_str(&c->body, bytes);
	c->inner->grown = true;
	return !c->body.failed;
}

static void end(struct connection *c, int status, const char *message)
{
	c->status = status;
	utf8_copy(c->message, sizeof(c->message), str_from(message));
	c->inner->state = IDLE;
	c->inner->ended = true;
}

static bool is_success(int status)
{
	return status / 100 == 2;
}

/* After a 401, other credentials are tried. */
static void judge_credentials(struct connection_inner *in, const struct http_response *response)
{
	if (response->old_credentials || response->status == 0) {
		return;
	}
	if (response->status == 401) {
		http_client_reload_credentials(in->client);
	}
	if (in->plugin != NULL && response->status == 401) {
		plugin_refused(in->plugin);
	} else if (in->plugin != NULL && response->status < 500) {
		plugin_accepted(in->plugin);
	}
}

/* A certificate that is none, or of another key, shows when libcurl first uses it: the plugin is run again. */
static void judge_certificate(struct connection_inner *in, const struct http_response *response, evrec_answer *answer)
{
	evrec_error err;

	if (response->bad_certificate && !response->old_credentials && in->plugin != NULL &&
	    plugin_unusable(in->plugin, response->message, &err)) {
		utf8_copy(answer->message, sizeof(answer->message), str_from(err.message));
	}
}

static void on_done(void *owner, void *ctx, const struct http_response *response)
{
	struct connection *c = owner;
	struct connection_inner *in = c->inner;
	evrec_answer answer = { .status = response->status };
	struct http_response last = *response;

	judge_credentials(in, response);
	if (!is_current(in, ctx)) {
		return;
	}
	if (!is_success(response->status)) {
		/* A GET changes nothing, so only the answer to the second sending matters. */
		last.sent_again = false;
		answer_read(&answer, &last);
		judge_certificate(in, response, &answer);
		http_client_hide_secrets(in->client, answer.message);
	}
	if (response->status == 401 && !in->refused) {
		in->refused = true;
		in->state = DUE;
		return;
	}
	c->retry_after = answer.retry_after;
	if (c->body.failed) {
		end(c, 0, "no memory for the answer");
	} else if (c->too_long) {
		end(c, 0, "the answer is too long");
	} else {
		/* A request that was cut off by another one's 401 is sent again. */
		end(c, response->unauthorized ? 0 : answer.status, answer.message);
	}
}

/* An older token stays in use, until the server refuses it. */
static void on_warning(void *owner, const char *message)
{
	(void)owner;
	(void)message;
}

/* ---- requests ---- */

static void step_plugin(struct connection *c)
{
	struct connection_inner *in = c->inner;
	struct exec_credential new;
	enum plugin_news news;
	evrec_error err, fault;

	if (in->plugin == NULL) {
		return;
	}
	news = plugin_step(in->plugin, &new, &err);
	if (news == PLUGIN_CREDENTIAL) {
		if (http_client_set_credentials(in->client, str_from(new.token), str_from(new.certificate),
		                                str_from(new.key), &fault) != 0) {
			plugin_unusable(in->plugin, fault.message, &err);
			news = PLUGIN_FAILED;
		}
		exec_credential_destroy(&new);
	}
	if (news == PLUGIN_FAILED && in->state == DUE) {
		end(c, 0, err.message);
	}
}

static void send(struct connection *c)
{
	struct connection_inner *in = c->inner;
	const struct http_request request = {
		.method = "GET",
		.path = in->path,
		.content_type = "application/json",
		.ctx = (void *)in->number,
		.timeout = in->timeout,
		.streamed = true,
	};
	struct http_response response;

	in->state = ASKED;
	if (!http_client_send(in->client, &request, &response)) {
		http_client_hide_secrets(in->client, response.message);
		end(c, 0, response.message);
	}
}

static void step(struct connection *c)
{
	struct connection_inner *in = c->inner;

	if (in->state == DUE && (in->plugin == NULL || plugin_ready(in->plugin))) {
		send(c);
	}
	step_plugin(c);
	(void)http_client_step(in->client);
}

static void wait_for_news(const struct connection *c, int64_t longest)
{
	const struct connection_inner *in = c->inner;
	const int64_t due = in->plugin == NULL ? INT64_MAX : plugin_next_step(in->plugin);
	int64_t timeout = longest < WAIT_MAX ? longest : WAIT_MAX;
	int fds[2];
	size_t n = in->plugin == NULL ? 0 : plugin_descriptors(in->plugin, fds);

	timeout = due < timeout ? due : timeout;
	if (in->state == DUE && in->plugin == NULL) {
		timeout = 0;
	}
	http_client_wait_with(in->client, timeout, fds, n);
}

enum connection_news connection_step(struct connection *c, int64_t deadline)
{
	struct connection_inner *in = c->inner;

	for (;;) {
		int64_t left;

		step(c);
		if (in->grown) {
			in->grown = false;
			return CONNECTION_BYTES;
		}
		if (in->ended) {
			in->ended = false;
			return CONNECTION_ENDED;
		}
		left = time_since(deadline, clock_monotonic(evrec_clock_real()));
		if (left == 0) {
			return CONNECTION_NONE;
		}
		wait_for_news(c, left);
	}
}

void connection_get(struct connection *c, char *path, int64_t timeout)
{
	struct connection_inner *in = c->inner;

	mem_free(in->path);
	in->path = path;
	in->timeout = timeout;
	in->state = DUE;
	in->refused = in->grown = in->ended = false;
	in->number++;
	buf_clear(&c->body);
	c->status = 0;
	c->too_long = false;
	c->retry_after = 0;
	c->message[0] = '\0';
}

/* ---- life ---- */

void connection_free(struct connection *c)
{
	if (c != NULL) {
		http_client_free(c->inner->client);
		plugin_free(c->inner->plugin);
		mem_free(c->inner->path);
		mem_free(c->inner);
		buf_free(&c->body);
		mem_free(c);
	}
}

static struct connection *allocate(void)
{
	struct connection *c = mem_zalloc(sizeof(*c));

	if (c != NULL) {
		c->inner = mem_zalloc(sizeof(*c->inner));
		if (c->inner == NULL) {
			mem_free(c);
			c = NULL;
		}
	}
	return c;
}

struct connection *connection_new(const evrec_sink *sink, evrec_error *err)
{
	const struct http_events events = { .done = on_done, .chunk = on_chunk, .warn = on_warning };
	const struct http_options options = kubernetes_http_options(kubernetes_sink_options(sink));
	struct exec_command *command = kubernetes_sink_command(sink);
	struct connection *c = allocate();

	if (c == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	(void)http_global_init();
	c->inner->client = http_client_new(&options, &events, c, err);
	if (c->inner->client == NULL) {
		connection_free(c);
		return NULL;
	}
	if (command != NULL && (c->inner->plugin = plugin_new(command, evrec_clock_real())) == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		connection_free(c);
		return NULL;
	}
	return c;
}
