/* The lines of a trace: what is written is read again, and nonsense is refused. */
#include "unit.h"

#include "event/trace_line.h"

static const struct trace_keys none = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };

static evrec_fields example(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("BackOff");
	f.note = EVREC_STR("a \"quoted\" \xE2\x82\xAC\nnote");
	f.component = EVREC_STR("kubelet");
	return f;
}

/* Reads a line, with its definition if it has one. */
static enum trace_read read_whole(evrec_str text, struct trace_line *line)
{
	const enum trace_read read = trace_read_line(text, line);

	return read == TRACE_OK && line->kind == TRACE_EVENT ? trace_read_definition(line) : read;
}

/* Reads the one line in `text`; fails the test if it is none. */
static void read_one(struct buf *text, struct trace_line *line)
{
	assert_false(text->failed);
	assert_int_equal(text->data[text->len - 1], '\n');
	assert_null(memchr(text->data, '\n', text->len - 1));
	assert_int_equal(read_whole((evrec_str){ text->data, text->len - 1 }, line), TRACE_OK);
	buf_clear(text);
}

static void test_header_has_the_options_and_a_version_that_is_read_again(void **state)
{
	struct trace_header header = { .fake_clock = true };
	struct trace_line line = { 0 };
	struct buf text = { 0 };

	(void)state;
	evrec_correlator_options_init(&header.correlator);
	header.correlator.burst_size = 7;
	header.correlator.max_interval = EVREC_SECOND / 2;
	trace_put_header(&text, &header);
	assert_memory_equal(text.data, TRACE_START, sizeof(TRACE_START) - 1);
	unit_check_contains(buf_cstr(&text), "\"clock\":\"fake\"");
	unit_check_contains(buf_cstr(&text), "\"burst_size\":7,\"qps\":0.0033333333333333335,");
	unit_check_contains(buf_cstr(&text), "\"max_interval_in_seconds\":0.5}");
	read_one(&text, &line);
	assert_int_equal(line.kind, TRACE_HEADER);
	assert_int_equal(line.version, TRACE_VERSION);
	buf_free(&text);
}

static void test_events_are_read_again(void **state)
{
	const int64_t times[] = { 0, 1, -1, T0, T0 + 123456789, -T0 - 1, INT64_C(9000000000) * EVREC_SECOND };
	const evrec_fields event = example();
	struct trace_line line = { 0 };
	struct buf text = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		trace_put_event(&text, TRACE_IDS, times[i], times[i], NULL, &none);
		read_one(&text, &line);
		assert_int_equal(line.kind, TRACE_AGAIN);
		assert_int_equal(line.id, TRACE_IDS);
		assert_int_equal(line.t, times[i]);
		assert_int_equal(line.at, times[i]);
		trace_put_event(&text, 1, times[i], T0 - 5, &event, &none);
		read_one(&text, &line);
		assert_int_equal(line.kind, TRACE_EVENT);
		assert_int_equal(line.id, 1);
		assert_int_equal(line.t, times[i]);
		assert_int_equal(line.at, T0 - 5);
		assert_true(str_eq(evrec_event_fields(line.event)->note, event.note));
		assert_str(evrec_event_fields(line.event)->regarding.name, "web-0");
		assert_str(evrec_event_fields(line.event)->component, "kubelet");
		assert_null(trace_line_keys(&line).spam.data);
		evrec_event_release(line.event);
	}
	buf_free(&text);
	buf_free(&line.keys);
}

static void test_keys_are_read_again(void **state)
{
	const struct trace_keys chosen = { EVREC_STR("a\0b"), EVREC_STR(""), EVREC_STR("s\"") };
	const evrec_fields event = example();
	struct trace_line line = { 0 };
	struct trace_keys read;
	struct buf text = { 0 };

	(void)state;
	trace_put_event(&text, 1, T0, T0, &event, &chosen);
	read_one(&text, &line);
	read = trace_line_keys(&line);
	assert_true(str_eq(read.aggregate, chosen.aggregate));
	assert_int_equal(read.local.len, 0);
	assert_non_null(read.local.data);
	assert_true(str_eq(read.spam, chosen.spam));
	evrec_event_release(line.event);
	buf_free(&text);
	buf_free(&line.keys);
}

static void test_gaps_and_ends_are_read_again(void **state)
{
	struct trace_line line = { 0 };
	struct buf text = { 0 };

	(void)state;
	trace_put_gap(&text, 12, T0, T0 + 1);
	read_one(&text, &line);
	assert_int_equal(line.kind, TRACE_GAP);
	assert_int_equal(line.lost, 12);
	trace_put_end(&text, "max_bytes", T0);
	read_one(&text, &line);
	assert_int_equal(line.kind, TRACE_END);
	buf_free(&text);
}

static void test_nonsense_is_malformed(void **state)
{
	static const char *const lines[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"id\":0,\"t\":1}",
		"{\"id\":4097,\"t\":1}",
		"{\"id\":1}",
		"{\"id\":1,\"t\":}",
		"{\"id\":1,\"t\":1.0000000001}",
		"{\"id\":1,\"t\":99999999999999999999}",
		"{\"id\":1,\"t\":1,\"event\":3}",
		"{\"id\":1,\"t\":1,\"event\":{}",
		"{\"lost\":-1}",
		"{\"lost\":\"x\"}",
		"{\"end\":1}",
		"{\"end\":\"bored\"}",
		"{\"evrec\":\"0.1.0\"}",
	};
	struct trace_line line = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(read_whole(str_from(lines[i]), &line), TRACE_MALFORMED);
	}
	buf_free(&line.keys);
}

static bool differ(const evrec_fields *a, const struct trace_keys *a_keys, const evrec_fields *b,
                   const struct trace_keys *b_keys)
{
	struct buf first = { 0 }, second = { 0 };
	bool equal;

	trace_put_identity(&first, a, a_keys);
	trace_put_identity(&second, b, b_keys);
	equal = str_eq(buf_str(&first), buf_str(&second));
	buf_free(&first);
	buf_free(&second);
	return !equal;
}

static void test_one_id_is_for_equal_events_alone(void **state)
{
	const struct trace_keys spam = { { NULL, 0 }, { NULL, 0 }, EVREC_STR("k") };
	const struct trace_keys empty = { { NULL, 0 }, { NULL, 0 }, EVREC_STR("") };
	const evrec_pair label = { EVREC_STR("app"), EVREC_STR("web") };
	evrec_fields a = example(), b = example();

	(void)state;
	assert_false(differ(&a, &none, &b, &none));
	assert_true(differ(&a, &none, &b, &spam));
	assert_true(differ(&a, &none, &b, &empty));
	b.labels = (evrec_map){ &label, 1 };
	assert_true(differ(&a, &none, &b, &none));
	b = a;
	b.reason = EVREC_STR("Back");
	b.note = EVREC_STR("Off");
	assert_true(differ(&a, &none, &b, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_has_the_options_and_a_version_that_is_read_again),
		cmocka_unit_test(test_events_are_read_again),
		cmocka_unit_test(test_keys_are_read_again),
		cmocka_unit_test(test_gaps_and_ends_are_read_again),
		cmocka_unit_test(test_nonsense_is_malformed),
		cmocka_unit_test(test_one_id_is_for_equal_events_alone),
	};

	return cmocka_run_group_tests_name("event: lines of a trace", tests, NULL, NULL);
}
