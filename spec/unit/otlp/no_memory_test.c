/* Every allocation fails once: of batches in both encodings, of gzip, and of answers' messages. */
#include "alloc_failure.h"

#include "otlp/answer.h"
#include "otlp_reader.h"

#define LEAST_BATCH 10
#define LEAST_ANSWER 2
#define RECORDS 40

static const evrec_pair pairs[] = { { { "service.name", 12 }, { "shop\xFF", 5 } }, { { "k\xFF", 2 }, { "v", 1 } } };
static enum otlp_encoding encoding;
static bool gzip;

static evrec_fields sample(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = EVREC_STR("web-0.17");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-\xFF") };
	f.type = EVREC_STR("Warning\xFF");
	f.reason = EVREC_STR("BackOff");
	f.note = EVREC_STR("Back-off \xFF restarting");
	f.host = EVREC_STR("node-1");
	f.first = f.last = T0;
	f.count = 3;
	return f;
}

/* Adds records until all are there: one that failed has left nothing, so the batch then has each of them once. */
static void fill(struct otlp_batch *batch)
{
	const evrec_fields f = sample();
	const struct otlp_record record = { &f, T0 };

	for (size_t i = 0; i < RECORDS;) {
		const size_t size = otlp_batch_size(batch);
		const bool added = otlp_batch_add(batch, &record);

		alloc_failure_check(added);
		i += added;
		assert_int_equal(otlp_batch_len(batch), i);
		assert_true(added ? otlp_batch_size(batch) > size : otlp_batch_size(batch) == size);
		if (!added) {
			alloc_failure_disarm();
		}
	}
}

static void check_body(char *body, size_t len)
{
	struct buf text = { 0 };
	size_t logs = 0;

	(encoding == OTLP_JSON ? otlp_read_json : otlp_read_protobuf)((evrec_str){ body, len }, &text);
	for (const char *at = strstr(buf_cstr(&text), "\nlog "); at != NULL; at = strstr(at + 1, "\nlog ")) {
		logs++;
	}
	assert_int_equal(logs, RECORDS);
	buf_free(&text);
}

static void batches(void)
{
	const struct otlp_options options = { .encoding = encoding, .gzip = gzip, .resource = { pairs, 2 } };
	struct otlp_batch *batch;
	char *body = NULL;
	size_t len = 0;

	alloc_failure_arm();
	batch = otlp_batch_new(&options);
	alloc_failure_check(batch != NULL);
	if (batch != NULL) {
		fill(batch);
		body = otlp_batch_finish(batch, &len);
		alloc_failure_check(body != NULL);
		assert_int_equal(otlp_batch_len(batch), 0);
	}
	alloc_failure_disarm();
	if (body != NULL && !gzip) {
		check_body(body, len);
	}
	mem_free(body);
	otlp_batch_free(batch);
}

static void a_batch_without_memory_stays_as_it_was(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * OTLP_ENCODINGS; i++) {
		encoding = (enum otlp_encoding)(i % OTLP_ENCODINGS);
		gzip = i >= OTLP_ENCODINGS;
		alloc_failure_run(batches, LEAST_BATCH);
	}
}

/*
 * The message is lost, and nothing else. jansson 2.14 gets the memory that it asks for: if it has none for the quote that ends
 * a string of 14 characters, such as partialSuccess, it reads beyond its buffer.
 */
static void answers(void)
{
	const evrec_str json =
		EVREC_STR("{\"partialSuccess\":{\"rejectedLogRecords\":\"3\",\"errorMessage\":\"old\"}}");
	const evrec_str protobuf = EVREC_STR("\x0A\x07\x08\x03\x12\x03old");
	struct otlp_answer answer = { .status = 200 };

	alloc_failure_arm();
	otlp_answer_read(&answer, OTLP_JSON, EVREC_STR(""), json);
	assert_int_equal(answer.rejected, 3);
	alloc_failure_check(strcmp(answer.message, "old") == 0);
	answer = (struct otlp_answer){ .status = 200 };
	otlp_answer_read(&answer, OTLP_PROTOBUF, EVREC_STR(""), protobuf);
	assert_int_equal(answer.rejected, 3);
	alloc_failure_check(strcmp(answer.message, "old") == 0);
	alloc_failure_disarm();
}

static void an_answer_without_memory_loses_its_message(void **state)
{
	(void)state;
	alloc_failure_run(answers, LEAST_ANSWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_without_memory_stays_as_it_was),
		cmocka_unit_test(an_answer_without_memory_loses_its_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
