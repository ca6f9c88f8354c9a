#include "http_fixture.h"

static void fixture_done(void *owner, void *ctx, const struct http_response *response)
{
	struct http_fixture *f = owner;
	size_t len = response->body.len < sizeof(f->body) - 1 ? response->body.len : sizeof(f->body) - 1;

	f->done++;
	f->ctx = ctx;
	f->response = *response;
	if (len != 0) {
		memcpy(f->body, response->body.data, len);
	}
	f->body[len] = '\0';
	if (f->all != NULL) {
		f->all[f->done - 1].response = *response;
		snprintf(f->all[f->done - 1].body, sizeof(f->all->body), "%.63s", f->body);
	}
}

static void fixture_warn(void *owner, const char *message)
{
	struct http_fixture *f = owner;

	f->warnings++;
	snprintf(f->warning, sizeof(f->warning), "%s", message);
}

void http_fixture_open_client(struct http_fixture *f)
{
	const struct http_events events = { .done = fixture_done, .warn = fixture_warn };
	evrec_error err = { 0 };

	f->client = http_client_new(&f->options, &events, f, &err);
	assert_string_equal(err.message, "");
	assert_non_null(f->client);
}

void http_fixture_prepare(struct http_fixture *f, const char *path)
{
	memset(f, 0, sizeof(*f));
	http_server_bind(&f->server, path);
	f->options = (struct http_options){ .server = str_from(f->server.url), .max_in_flight = 32, .timeout = SOON };
}

void http_fixture_open(struct http_fixture *f, const struct http_turn *turns, size_t turns_len)
{
	http_fixture_prepare(f, "");
	http_server_start(&f->server, turns, turns_len);
	http_fixture_open_client(f);
}

void http_fixture_close(struct http_fixture *f)
{
	http_client_free(f->client);
	http_server_stop(&f->server);
}

bool http_fixture_send_sized(struct http_fixture *f, const char *method, const char *path, size_t len, void *ctx)
{
	struct http_request request = { .method = method,
		                        .path = path,
		                        .content_type = "text/plain",
		                        .body = mem_alloc(len),
		                        .body_len = len,
		                        .timeout = f->timeout,
		                        .ctx = ctx };

	memset(request.body, 'x', len);
	return http_client_send(f->client, &request, &f->response);
}

bool http_fixture_send(struct http_fixture *f, const char *method, const char *path)
{
	return http_fixture_send_sized(f, method, path, 5, NULL);
}

void http_fixture_run_until(struct http_fixture *f, unsigned done)
{
	int64_t deadline = unit_mono() + SOON;

	while (f->done < done) {
		assert_true(unit_mono() < deadline);
		(void)http_client_step(f->client);
		http_client_wait(f->client, EVREC_SECOND / 50);
	}
}

void http_fixture_exchange(struct http_fixture *f)
{
	assert_true(http_fixture_send(f, "POST", "/"));
	http_fixture_run_until(f, f->done + 1);
}

int64_t http_fixture_exchange_in_vain(struct http_fixture *f)
{
	int64_t timeout = EVREC_SECOND / 5;

	for (;; timeout *= 2) {
		f->timeout = timeout;
		http_fixture_exchange(f);
		assert_true(f->response.timed_out);
		if (!f->response.unsent) {
			break;
		}
		assert_true(timeout < SOON / 2);
	}
	f->timeout = 0;
	return timeout;
}

void http_fixture_check_message(struct http_fixture *f, const char *text)
{
	unit_check_contains(f->response.message, text);
}
