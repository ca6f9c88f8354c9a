/*
 * Answers of a server: status, Retry-After and body of any bytes, and the outcome that follows. The same body as what a
 * credential plugin prints.
 */
#include "fuzz.h"

#include "exec/credential.h"
#include "http/retry_after.h"
#include "kubernetes/answer.h"
#include "kubernetes/verdict.h"
#include "outbox/retry.h"

#include <jansson.h>

#define YEAR (365 * 24 * 3600 * EVREC_SECOND)

static const int statuses[] = { 200, 201, 204, 299, 100, 301, 400, 401, 403, 404, 408, 409, 410,
	                        413, 422, 429, 500, 502, 503, 504, 505, 599, 0,   999, -1 };

static bool is_success(int status)
{
	return status >= 200 && status <= 299;
}

static void check_message(const char *message)
{
	evrec_str text = str_from(message);
	size_t i;

	CHECK(text.len < sizeof(((evrec_answer *)NULL)->message));
	CHECK(fuzz_is_utf8(text));
	for (i = 0; i < text.len; i++) {
		CHECK((unsigned char)message[i] >= ' ' && message[i] != 0x7F);
	}
	CHECK(text.len == 0 || (message[0] != ' ' && message[text.len - 1] != ' '));
}

/* The answer has the name and resource version of the event, or nothing if they are too long. */
static void check_stored(const char *taken, size_t room, const json_t *metadata, const char *key)
{
	const char *stored = json_string_value(json_object_get(metadata, key));

	CHECK(strlen(taken) < room);
	CHECK(strcmp(taken, stored != NULL && strlen(stored) < room ? stored : "") == 0);
}

static void check_success(const evrec_answer *answer, int status, const json_t *json)
{
	const json_t *metadata = json_object_get(json, "metadata");
	const char *kind = json_string_value(json_object_get(json, "kind"));
	bool is_event = json_is_object(json) && (kind == NULL || strcmp(kind, "Event") == 0);

	CHECK(answer->status == (is_event ? status : 0));
	CHECK(!answer->terminating);
	if (is_event) {
		check_stored(answer->name, sizeof(answer->name), metadata, "name");
		check_stored(answer->resource_version, sizeof(answer->resource_version), metadata, "resourceVersion");
	} else {
		CHECK(answer->name[0] == '\0' && answer->resource_version[0] == '\0');
		CHECK(strncmp(answer->message, "not an API server's answer", 26) == 0);
	}
}

static void check_failure(const evrec_answer *answer, int status)
{
	CHECK(answer->status == status);
	CHECK(answer->name[0] == '\0' && answer->resource_version[0] == '\0');
	CHECK(!answer->terminating || status == 403 || status == 404);
}

/* Only an answer that would be the same the next time ends a write. */
static void check_outcome(const evrec_answer *answer, const struct kubernetes_try *try)
{
	bool passing = answer->status == 0 || answer->status == 401 || answer->status == 408 || answer->status == 429 ||
	               (answer->status >= 500 && answer->status != 501 && answer->status != 505);
	struct outcome o;

	kubernetes_outcome(try, answer, &o);
	CHECK((o.verdict == VERDICT_WRITTEN) == is_success(answer->status));
	CHECK((o.verdict == VERDICT_RETRY) == (passing || (answer->status == 409 && try->verb == VERB_PATCH)));
	CHECK(o.verdict != VERDICT_CREATE || try->verb == VERB_PATCH);
	CHECK(o.verdict != VERDICT_RENAME || (try->verb == VERB_CREATE && !try->renamed));
	CHECK(o.verdict != VERDICT_EXISTS || (try->verb == VERB_CREATE && try->may_exist));
	CHECK(o.verdict != VERDICT_DROP || o.cause < EVREC_CAUSES);
	CHECK(!o.maybe_received || (try->verb == VERB_CREATE && o.verdict == VERDICT_RETRY));
	CHECK(!o.maybe_received || answer->status != 0 || !answer->unsent);
	CHECK(o.once_from <= strlen(o.message));
}

static void check_delay(int64_t retry_after, unsigned tries, uint64_t random)
{
	const int64_t five_minutes = 300 * EVREC_SECOND;
	int64_t delay = retry_delay(tries, retry_after, random);

	CHECK(delay >= 0 && delay <= five_minutes);
	CHECK(delay >= (retry_after < five_minutes ? retry_after : five_minutes));
	CHECK(retry_after != 0 || delay <= 30 * EVREC_SECOND);
}

/* No message holds a part of the text: there are only a few, which are all ASCII. */
static void check_credential(evrec_str text)
{
	struct exec_credential c;
	evrec_error err;

	if (exec_credential_read(text, "client.authentication.k8s.io/v1", &c, &err) != 0) {
		CHECK(err.code == EVREC_EINVALID && strstr(err.message, "is no ExecCredential: ") != NULL);
		CHECK(c.token == NULL && c.certificate == NULL && c.key == NULL);
		return;
	}
	CHECK((c.certificate == NULL) == (c.key == NULL));
	CHECK(c.token != NULL || c.key != NULL);
	CHECK(c.token == NULL || *c.token != '\0');
	exec_credential_destroy(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	int status = statuses[input_byte(&in) % (sizeof(statuses) / sizeof(statuses[0]))];
	uint8_t choice = input_byte(&in);
	const struct kubernetes_try try = { choice & 4 ? VERB_PATCH : VERB_CREATE, choice & 1, choice & 2, false };
	evrec_str header = input_text(&in), body = input_rest(&in);
	evrec_answer answer = { .status = status, .unsent = choice & 8 };
	json_t *json = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
	int64_t from_header = retry_after_parse(header, T0);

	CHECK(from_header >= 0 && from_header <= YEAR && from_header % EVREC_SECOND == 0);
	answer.retry_after = from_header;
	answer_read_body(&answer, body);
	check_message(answer.message);
	if (is_success(status)) {
		check_success(&answer, status, json);
	} else {
		check_failure(&answer, status);
	}
	CHECK(answer.retry_after >= 0 && answer.retry_after <= YEAR);
	CHECK(from_header == 0 || answer.retry_after == from_header);
	check_outcome(&answer, &try);
	check_credential(body);
	check_delay(answer.retry_after, choice >> 4, choice * UINT64_C(0x9E3779B97F4A7C15));
	json_decref(json);
	input_end(&in);
	return 0;
}
