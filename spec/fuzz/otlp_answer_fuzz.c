/* Answers of receivers of OTLP: status, Content-Type and body of any bytes, and the verdict that follows. */
#include "fuzz.h"

#include "otlp/verdict.h"

static const int statuses[] = { 200, 202, 204, 299, 0,   100, 301, 400, 401, 403, 404,
	                        408, 413, 415, 429, 500, 502, 503, 504, 999, -1 };
static const size_t sizes[] = { 1, 2, 512, SIZE_MAX };

static bool is_success(int status)
{
	return status >= 200 && status <= 299;
}

static void check_message(const char *message)
{
	const evrec_str text = str_from(message);

	CHECK(text.len < sizeof(((struct otlp_answer *)NULL)->message));
	CHECK(fuzz_is_utf8(text));
	for (size_t i = 0; i < text.len; i++) {
		CHECK((unsigned char)message[i] >= ' ' && message[i] != 0x7F);
	}
	CHECK(text.len == 0 || (message[0] != ' ' && message[text.len - 1] != ' '));
}

/* Only these are sent again, as OTLP has it. */
static bool is_passing(int status)
{
	return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void check_success(const struct otlp_answer *answer, const struct otlp_verdict *v, size_t n)
{
	CHECK(!v->split);
	if (answer->rejected == 0) {
		CHECK(v->outcome.verdict == VERDICT_WRITTEN);
		CHECK(v->affected == (answer->web_page || answer->message[0] != '\0' ? 1 : 0));
		return;
	}
	CHECK(v->outcome.verdict == VERDICT_DROP);
	CHECK(v->affected == n || v->affected == (uint64_t)answer->rejected);
}

static void check_verdict(const struct otlp_answer *answer, size_t n)
{
	struct otlp_verdict v;

	otlp_verdict(answer, n, &v);
	CHECK(v.affected <= n);
	CHECK(strlen(v.outcome.message) < sizeof(v.outcome.message));
	CHECK(fuzz_is_utf8(str_from(v.outcome.message)));
	CHECK((v.outcome.problem == NULL) == (v.outcome.message[0] == '\0'));
	if (is_success(answer->status)) {
		check_success(answer, &v, n);
		return;
	}
	CHECK(answer->rejected == 0);
	CHECK(!v.split || (n > 1 && (answer->status == 400 || answer->status == 413) && v.affected == 0));
	CHECK(v.split || v.affected == n);
	CHECK(v.split || v.outcome.verdict == (is_passing(answer->status) ? VERDICT_RETRY : VERDICT_DROP));
	CHECK(v.outcome.cause < EVREC_CAUSES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	const int status = statuses[input_byte(&in) % (sizeof(statuses) / sizeof(*statuses))];
	const uint8_t choice = input_byte(&in);
	const enum otlp_encoding asked = choice & 1 ? OTLP_JSON : OTLP_PROTOBUF;
	const evrec_str type = input_text(&in), body = input_rest(&in);
	struct otlp_answer answer = { .status = status, .timed_out = choice & 2 }, again = answer;

	otlp_answer_read(&answer, asked, type, body);
	otlp_answer_read(&again, asked, type, body);
	CHECK(answer.status == status && answer.rejected >= 0);
	CHECK(answer.rejected == again.rejected && strcmp(answer.message, again.message) == 0);
	check_message(answer.message);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		check_verdict(&answer, sizes[i]);
	}
	CHECK((otlp_result(&answer) == REQUEST_SUCCEEDED) == is_success(status));
	input_end(&in);
	return 0;
}
