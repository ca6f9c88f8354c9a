/* Questions and answers: written and read back, alone and in frames, and every other message of bytes refused. */
#include "unit.h"

#include "alloc_failure.h"
#include "share/explained.h"
#include "share/frame.h"

static const evrec_reference pod = { .kind = { "Pod", 3 },
	                             .api_version = { "v1", 2 },
	                             .name = { "web-0", 5 },
	                             .ns = { "shop", 4 },
	                             .uid = { "u", 1 },
	                             .resource_version = { "7", 1 } };

static evrec_suppressed example(enum evrec_stage stage)
{
	evrec_suppressed s = {
		.stage = stage,
		.cause = stage == EVREC_STAGE_DROPPED ? EVREC_CAUSE_REJECTED : EVREC_CAUSES,
		.regarding = pod,
		.component = EVREC_STR("kubelet"),
		.host = EVREC_STR("n1"),
		.type = EVREC_STR("Warning"),
		.reason = EVREC_STR("Failed"),
		.message = EVREC_STR("It failed."),
		.count = UINT64_MAX,
		.first = T0,
		.last = T0 + 1,
		.aggregate_kind = EVREC_KEY_CUSTOM,
		.aggregate_key = { "a\0\xFF", 3 },
		.spam_kind = EVREC_KEY_UNKNOWN,
		.tokens = 0.25,
		.next_token = INT64_MAX,
	};

	return s;
}

static void put_answer(struct buf *out)
{
	evrec_suppressed s = example(EVREC_STAGE_RATE_LIMITED);

	explained_put_sink(out, 1, EVREC_STR("kubernetes"));
	explained_put(out, &s);
	s = example(EVREC_STAGE_DROPPED);
	explained_put(out, &s);
	explained_put_sink(out, 7, EVREC_STR("file"));
	explained_put_end(out);
}

static struct explained read_next(struct bytes *in)
{
	struct explained part;
	evrec_error err = { 0 };

	if (explained_next(in, &part, &err) != 0) {
		fail_msg("%s", err.message);
	}
	return part;
}

static void check_equal(const evrec_suppressed *a, const evrec_suppressed *b)
{
	struct buf bytes_a = { 0 }, bytes_b = { 0 };

	explained_put(&bytes_a, a);
	explained_put(&bytes_b, b);
	assert_true(str_eq(buf_str(&bytes_a), buf_str(&bytes_b)));
	assert_int_equal(a->stage, b->stage);
	assert_int_equal(a->cause, b->cause);
	assert_int_equal(a->count, b->count);
	assert_true(str_eq(a->regarding.uid, b->regarding.uid));
	assert_true(str_eq(a->reason, b->reason));
	assert_true(str_eq(a->aggregate_key, b->aggregate_key));
	buf_free(&bytes_a);
	buf_free(&bytes_b);
}

static void test_answer_is_read_back(void **state)
{
	const evrec_suppressed limited = example(EVREC_STAGE_RATE_LIMITED), dropped = example(EVREC_STAGE_DROPPED);
	struct buf out = { 0 };
	struct explained part;
	struct bytes in;

	(void)state;
	put_answer(&out);
	in = bytes_of(buf_str(&out));
	part = read_next(&in);
	assert_int_equal(part.type, EXPLAINED_SINK);
	assert_int_equal(part.number, 1);
	assert_str(part.name, "kubernetes");
	part = read_next(&in);
	assert_int_equal(part.type, EXPLAINED_EVENT);
	check_equal(&part.suppressed, &limited);
	/* It is not compared. */
	assert_int_equal(part.suppressed.regarding.resource_version.len, 0);
	part = read_next(&in);
	check_equal(&part.suppressed, &dropped);
	part = read_next(&in);
	assert_int_equal(part.number, 7);
	assert_int_equal(read_next(&in).type, EXPLAINED_END);
	buf_free(&out);
}

/* Reads all. The number of parts; -1: refused. */
static int count_parts(evrec_str bytes)
{
	struct bytes in = bytes_of(bytes);
	struct explained part = { .type = EXPLAINED_SINK };
	evrec_error err = { 0 };
	int n = 0;

	for (; part.type != EXPLAINED_END; n++) {
		if (explained_next(&in, &part, &err) != 0) {
			assert_int_equal(err.code, EVREC_EINVALID);
			assert_string_equal(err.message, "the peer sent no valid answer");
			return -1;
		}
	}
	return n;
}

static void test_answer_that_is_cut_anywhere_is_refused(void **state)
{
	struct buf out = { 0 };

	(void)state;
	put_answer(&out);
	assert_int_equal(count_parts(buf_str(&out)), 5);
	for (size_t len = 0; len < out.len; len++) {
		assert_int_equal(count_parts((evrec_str){ out.data, len }), -1);
	}
	buf_put(&out, "x", 1);
	assert_int_equal(count_parts(buf_str(&out)), -1);
	buf_free(&out);
}

/* A stage, a cause or a kind of key that there is not, and a cause of what was not dropped. */
static void test_numbers_out_of_range_are_refused(void **state)
{
	static const struct {
		size_t at;
		char value;
	} wrong[] = { { 0, EXPLAINED_EVENT + 1 },
		      { 1, EVREC_STAGES },
		      { 2, EVREC_CAUSES + 1 },
		      { 2, 0 },
		      { 3, EVREC_KEY_UNKNOWN + 1 },
		      { 4, EVREC_KEY_UNKNOWN + 1 },
		      { 5, 127 } };
	const evrec_suppressed s = example(EVREC_STAGE_RATE_LIMITED);
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		buf_clear(&out);
		explained_put(&out, &s);
		explained_put_end(&out);
		assert_int_equal(count_parts(buf_str(&out)), 2);
		out.data[wrong[i].at] = wrong[i].value;
		assert_int_equal(count_parts(buf_str(&out)), -1);
	}
	buf_free(&out);
}

static void test_object_is_read_back(void **state)
{
	struct buf out = { 0 };
	evrec_reference object;
	evrec_error err = { 0 };
	bool any;

	(void)state;
	explained_put_object(&out, &pod);
	assert_int_equal(explained_read_object(buf_str(&out), &object, &any, &err), 0);
	assert_false(any);
	assert_str(object.kind, "Pod");
	assert_str(object.uid, "u");
	assert_str(object.name, "web-0");
	for (size_t len = 0; len < out.len; len++) {
		assert_int_equal(explained_read_object((evrec_str){ out.data, len }, &object, &any, &err),
		                 EVREC_EINVALID);
	}
	buf_put(&out, "x", 1);
	assert_int_equal(explained_read_object(buf_str(&out), &object, &any, &err), EVREC_EINVALID);
	buf_clear(&out);
	explained_put_object(&out, NULL);
	assert_int_equal(explained_read_object(buf_str(&out), &object, &any, &err), 0);
	assert_true(any);
	out.data[0] = 2;
	assert_int_equal(explained_read_object(buf_str(&out), &object, &any, &err), EVREC_EINVALID);
	buf_free(&out);
}

/* ---- frames ---- */

static struct frame read_back(const struct buf *out)
{
	struct frame f;
	evrec_error err = { 0 };

	if (frame_read(buf_str(out), &f, &err) != 0) {
		fail_msg("%s", err.message);
	}
	return f;
}

static void check_broken(const struct buf *out, const char *part)
{
	struct frame f;
	evrec_error err = { 0 };

	assert_int_equal(frame_read(buf_str(out), &f, &err), EVREC_EINVALID);
	unit_check_contains(err.message, part);
}

static void test_question_is_read_back_from_a_frame(void **state)
{
	struct buf out = { 0 }, object = { 0 };
	struct frame f;

	(void)state;
	explained_put_object(&object, &pod);
	assert_true(frame_ask(&out, 9, buf_str(&object)));
	f = read_back(&out);
	assert_int_equal(f.type, FRAME_ASK);
	assert_int_equal(f.question, 9);
	assert_true(str_eq(f.object, buf_str(&object)));
	out.len -= object.len;
	check_broken(&out, "a question about nothing");
	out.len--;
	check_broken(&out, "a question about nothing");
	buf_free(&out);
	buf_free(&object);
}

static void test_answer_is_split_and_put_together(void **state)
{
	struct buf whole = { 0 }, out = { 0 };
	struct frame_parts parts = { { 0 }, 0 };
	size_t at = 0, frames = 0;
	bool complete = false;

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		const evrec_suppressed s = example(EVREC_STAGE_MERGED);

		explained_put(&whole, &s);
	}
	while (!complete) {
		struct frame f;

		assert_true(frame_answer(&out, 3, buf_str(&whole), at, &at));
		assert_true(out.len <= FRAME_MAX);
		f = read_back(&out);
		assert_int_equal(f.type, FRAME_ANSWER);
		assert_int_equal(f.question, 3);
		assert_int_equal(frame_collect(&parts, &f.part, FRAME_ANSWER_MAX, &complete, NULL), 0);
		frames++;
	}
	assert_true(frames > 2);
	assert_true(str_eq(buf_str(&parts.whole), buf_str(&whole)));
	buf_free(&parts.whole);
	buf_free(&whole);
	buf_free(&out);
}

static void test_answer_of_a_wrong_size_is_refused(void **state)
{
	struct buf out = { 0 };
	size_t next_part;

	(void)state;
	assert_true(frame_answer_none(&out, 4));
	assert_int_equal(read_back(&out).question, 4);
	assert_int_equal(read_back(&out).flags, FRAME_NONE);
	buf_put(&out, "x", 1);
	check_broken(&out, "an answer of a wrong size");
	out.len -= 2;
	check_broken(&out, "an answer of a wrong size");
	assert_true(frame_answer(&out, 4, EVREC_STR("x"), 0, &next_part));
	buf_put(&out, "y", 1);
	check_broken(&out, "does not fit");
	out.len -= 2;
	check_broken(&out, "does not fit");
	buf_free(&out);
}

/* ---- memory ---- */

static void scenario(void)
{
	struct buf object = { 0 }, answer = { 0 }, frame = { 0 };
	size_t next_part = 0;
	bool made;

	alloc_failure_arm();
	explained_put_object(&object, &pod);
	alloc_failure_check(!object.failed);
	put_answer(&answer);
	alloc_failure_check(!answer.failed);
	if (!object.failed && !answer.failed) {
		alloc_failure_check(frame_ask(&frame, 1, buf_str(&object)));
		buf_free(&frame);
		made = frame_answer(&frame, 1, buf_str(&answer), 0, &next_part);
		alloc_failure_check(made);
		assert_int_equal(next_part, made ? answer.len : 0);
		buf_free(&frame);
		alloc_failure_check(frame_answer_none(&frame, 1));
	}
	alloc_failure_disarm();
	buf_free(&object);
	buf_free(&answer);
	buf_free(&frame);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer_is_read_back),
		cmocka_unit_test(test_answer_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(test_numbers_out_of_range_are_refused),
		cmocka_unit_test(test_object_is_read_back),
		cmocka_unit_test(test_question_is_read_back_from_a_frame),
		cmocka_unit_test(test_answer_is_split_and_put_together),
		cmocka_unit_test(test_answer_of_a_wrong_size_is_refused),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("explained", tests, NULL, NULL);
}
