/* What a server answers: status, Retry-After, body; and what is to be done about it. */
#include "fuzz.h"

#include "deliver/answer.h"
#include "deliver/retry.h"

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

/* What an answer has of metadata is what the event has, or nothing where that is too long. */
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

/* Semantics 5, by what is lost: a write ends for an answer that would be the same the next time, for no other. */
static void check_decision(const evrec_answer *answer, enum verb verb, const struct retry_state *state)
{
	struct retry_decision d = retry_decide(verb, state, answer);
	bool passing = answer->status == 0 || answer->status == 401 || answer->status == 408 || answer->status == 429 ||
	               (answer->status >= 500 && answer->status <= 504 && answer->status != 501);

	CHECK((d.verdict == VERDICT_DONE) == is_success(answer->status));
	CHECK((d.verdict == VERDICT_AGAIN || d.verdict == VERDICT_RELOAD) ==
	      (passing || (answer->status == 409 && verb == VERB_PATCH)));
	CHECK(d.verdict != VERDICT_CREATE || verb == VERB_PATCH);
	CHECK(d.verdict != VERDICT_RENAME || (verb == VERB_CREATE && !state->renamed));
	CHECK(d.verdict != VERDICT_EXISTS || (verb == VERB_CREATE && state->uncertain));
	CHECK(d.verdict != VERDICT_DROP || d.cause < EVREC_CAUSES);
	CHECK(!d.uncertain || (verb == VERB_CREATE && d.verdict == VERDICT_AGAIN));
	CHECK(!d.uncertain || answer->status != 0 || !answer->unsent);
}

static void check_delay(int64_t retry_after, unsigned tries, uint64_t random)
{
	const int64_t five_minutes = 300 * EVREC_SECOND;
	int64_t delay = retry_delay(tries, retry_after, random);

	CHECK(delay >= 0 && delay <= five_minutes);
	CHECK(delay >= (retry_after < five_minutes ? retry_after : five_minutes));
	CHECK(retry_after != 0 || delay <= 30 * EVREC_SECOND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	int status = statuses[input_byte(&in) % (sizeof(statuses) / sizeof(statuses[0]))];
	uint8_t choice = input_byte(&in);
	struct retry_state state = { choice >> 4, choice & 1, choice & 2 };
	evrec_str header = input_text(&in), body = input_rest(&in);
	evrec_answer answer = { .status = status, .unsent = choice & 8 };
	json_t *json = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
	int64_t from_header = answer_retry_after(header, T0);

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
	check_decision(&answer, choice & 4 ? VERB_PATCH : VERB_CREATE, &state);
	check_delay(answer.retry_after, state.tries, choice * UINT64_C(0x9E3779B97F4A7C15));
	json_decref(json);
	input_end(&in);
	return 0;
}
