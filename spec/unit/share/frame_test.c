/* Frames: written and read back, and every other message of bytes refused. */
#include "unit.h"

#include "alloc_failure.h"
#include "event/event.h"
#include "share/frame.h"

static const unsigned char instance[FRAME_ID_SIZE] = "instance-of-test";

static const evrec_pair labels[] = { { { "app", 3 }, { "web", 3 } } };
static const evrec_pair annotations[] = { { { "a", 1 }, { "1", 1 } }, { { "b", 1 }, { "", 0 } } };
static const evrec_owner owners[] = { { { "Pod", 3 }, { "v1", 2 }, { "web-0", 5 }, { "u", 1 }, 1, -1 } };

static evrec_fields example(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.labels = (evrec_map){ labels, 1 };
	f.annotations = (evrec_map){ annotations, 2 };
	f.owners = owners;
	f.owners_len = 1;
	f.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	f.regarding.field_path = EVREC_STR("spec");
	f.related = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("n1") };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("Failed");
	f.action = EVREC_STR("Pulling");
	f.note = EVREC_STR("It failed.");
	f.component = f.controller = EVREC_STR("kubelet");
	f.host = f.instance = EVREC_STR("n1");
	f.count = 1;
	return f;
}

static evrec_str bytes_of_event(struct buf *out, const evrec_fields *event)
{
	buf_clear(out);
	frame_event_put(out, event, NULL, 0);
	assert_false(out->failed);
	return buf_str(out);
}

static struct frame read_back(const struct buf *out)
{
	struct frame f;
	evrec_error err = { 0 };

	if (frame_read(buf_str(out), &f, &err) != 0) {
		fail_msg("%s", err.message);
	}
	return f;
}

static void check_broken(evrec_str bytes, const char *part)
{
	struct frame f;
	evrec_error err = { 0 };

	assert_int_equal(frame_read(bytes, &f, &err), EVREC_EINVALID);
	unit_check_contains(err.message, part);
}

/* ---- events ---- */

static void test_event_is_read_back(void **state)
{
	struct frame_keys keys[2] = { { .has_aggregate = true, .aggregate = EVREC_STR("k"), .local = EVREC_STR("") },
		                      { .has_spam = true, .spam = EVREC_STR("s") } };
	evrec_fields f = example();
	struct buf out = { 0 }, json = { 0 }, again = { 0 };
	struct frame_event event;

	(void)state;
	frame_event_put(&out, &f, keys, 2);
	assert_int_equal(frame_event_read(buf_str(&out), &event, NULL), 0);
	json_event(&json, &f, EVREC_CORE_V1);
	json_event(&again, &event.fields, EVREC_CORE_V1);
	assert_string_equal(buf_cstr(&again), buf_cstr(&json));
	assert_int_equal(event.fields.owners[0].block_owner_deletion, -1);
	assert_int_equal(event.sinks, 2);
	assert_true(event.keys[0].has_aggregate && !event.keys[0].has_spam);
	assert_str(event.keys[0].aggregate, "k");
	assert_str(event.keys[0].local, "");
	assert_true(event.keys[1].has_spam && !event.keys[1].has_aggregate);
	assert_str(event.keys[1].spam, "s");
	frame_event_destroy(&event);
	buf_free(&out);
	buf_free(&json);
	buf_free(&again);
}

/* Occurrences of one event have the same bytes: names and times are no part of them. Everything else is. */
static void test_bytes_of_an_event_are_its_identity(void **state)
{
	evrec_fields f = example(), other = f;
	struct buf a = { 0 }, b = { 0 };

	(void)state;
	(void)bytes_of_event(&a, &f);
	other.name = EVREC_STR("web-0.1");
	other.first = other.last = other.event_time = T0;
	assert_true(str_eq(bytes_of_event(&b, &other), buf_str(&a)));
	other.regarding.resource_version = EVREC_STR("7");
	assert_false(str_eq(bytes_of_event(&b, &other), buf_str(&a)));
	buf_clear(&b);
	frame_event_put(&b, &f, &(struct frame_keys){ .has_spam = true }, 1);
	assert_false(str_eq(buf_str(&b), buf_str(&a)));
	buf_free(&a);
	buf_free(&b);
}

static void check_refused(const evrec_fields *f, const char *part)
{
	struct frame_event event;
	struct buf out = { 0 };
	evrec_error err = { 0 };

	assert_int_equal(frame_event_read(bytes_of_event(&out, f), &event, &err), EVREC_EINVALID);
	unit_check_contains(err.message, part);
	buf_free(&out);
}

static void test_event_is_checked_as_a_recording_call_is(void **state)
{
	evrec_fields f = example();

	(void)state;
	f.ns = EVREC_STR("../secrets");
	check_refused(&f, "namespace");
	f = example();
	f.regarding.kind = (evrec_str){ NULL, 0 };
	check_refused(&f, "regarding");
	f = example();
	f.related.ns = EVREC_STR("a/b");
	check_refused(&f, "related");
	f = example();
	f.type = EVREC_STR("\xFF");
	check_refused(&f, "type");
	f = example();
	f.reason = (evrec_str){ NULL, 0 };
	check_refused(&f, "reason");
	f = example();
	f.note = EVREC_STR("\xC3");
	check_refused(&f, "note");
	f = example();
	f.host = EVREC_STR("\xC3");
	check_refused(&f, "host");
}

/* A copy that ends where the bytes end, so that a sanitizer sees a read beyond them. */
static void read_cut(evrec_str whole, size_t len)
{
	char *cut = malloc(len == 0 ? 1 : len);
	struct frame_event event;

	assert_non_null(cut);
	memcpy(cut, whole.data, len);
	assert_int_equal(frame_event_read((evrec_str){ cut, len }, &event, NULL), EVREC_EINVALID);
	free(cut);
}

static void test_event_that_is_cut_anywhere_is_refused(void **state)
{
	evrec_fields f = example();
	struct buf out = { 0 };
	struct frame_event event;
	size_t i;

	(void)state;
	(void)bytes_of_event(&out, &f);
	for (i = 0; i < out.len; i++) {
		read_cut(buf_str(&out), i);
	}
	buf_put(&out, "", 1);
	assert_int_equal(frame_event_read(buf_str(&out), &event, NULL), EVREC_EINVALID);
	buf_free(&out);
}

/* No namespace, no resource version, and 2^35 labels. */
static void test_more_pairs_than_there_are_bytes_are_refused(void **state)
{
	static const char bytes[] = "\0\0\x80\x80\x80\x80\x80\x01\0\0";
	struct frame_event event;

	(void)state;
	assert_int_equal(frame_event_read((evrec_str){ bytes, sizeof(bytes) - 1 }, &event, NULL), EVREC_EINVALID);
}

/* ---- frames ---- */

static void test_occurrences_and_their_ends_are_read_back(void **state)
{
	const struct frame_times times = { 3, 7, T0, T0 + 1 };
	const struct frame_ack ack = { 3, 7, 1, EVREC_CAUSE_FORBIDDEN, 0 };
	struct frame_times read;
	struct buf out = { 0 };
	struct frame f;

	(void)state;
	assert_true(frame_begin(&out, FRAME_MORE, 0));
	frame_add_times(&out, &(struct frame_times){ 1, 0, 0, 0 });
	frame_add_times(&out, &times);
	frame_set_seq(&out, 9);
	f = read_back(&out);
	assert_int_equal(f.type, FRAME_MORE);
	assert_int_equal(f.seq, 9);
	assert_int_equal(frame_times_len(&f), 2);
	assert_int_equal(frame_times_at(&f, 0).n, 0);
	read = frame_times_at(&f, 1);
	assert_memory_equal(&read, &times, sizeof(times));
	assert_true(frame_begin(&out, FRAME_ACK, 0));
	frame_add_ack(&out, &ack);
	f = read_back(&out);
	assert_int_equal(frame_acks_len(&f), 1);
	assert_int_equal(frame_ack_at(&f, 0).end, EVREC_CAUSE_FORBIDDEN);
	assert_int_equal(frame_ack_at(&f, 0).sink, 1);
	assert_true(frame_batch(&out, UINT64_MAX - 1));
	assert_true(read_back(&out).batch == UINT64_MAX - 1);
	buf_free(&out);
}

static void test_long_event_is_split_and_put_together(void **state)
{
	const struct frame_times times = { 3, 2, T0, T0 };
	struct frame_parts parts = { { 0 }, 0 };
	struct buf whole = { 0 }, out = { 0 };
	size_t next = 0, frames = 0;
	bool complete = false;
	struct frame f;

	(void)state;
	for (size_t i = 0; i < 3 * FRAME_MAX; i++) {
		buf_put(&whole, &(char){ (char)i }, 1);
	}
	while (!complete) {
		assert_true(frame_event(&out, FRAME_AGAIN, &times, buf_str(&whole), next, &next));
		assert_true(out.len <= FRAME_MAX);
		f = read_back(&out);
		assert_int_equal(f.flags, FRAME_AGAIN);
		assert_int_equal(f.times.n, 2);
		assert_int_equal(frame_collect(&parts, &f.part, FRAME_EVENT_MAX, &complete, NULL), 0);
		frames++;
	}
	assert_int_equal(frames, 4);
	assert_true(str_eq(buf_str(&parts.whole), buf_str(&whole)));
	/* The last part once more has no place. */
	assert_int_equal(frame_collect(&parts, &f.part, FRAME_EVENT_MAX, &complete, NULL), EVREC_EINVALID);
	assert_int_equal(frame_collect(&(struct frame_parts){ .total = 0 }, &f.part, FRAME_EVENT_MAX, &complete, NULL),
	                 EVREC_EINVALID);
	f.part.offset = 0;
	assert_int_equal(frame_collect(&parts, &f.part, f.part.total - 1, &complete, NULL), EVREC_EINVALID);
	buf_free(&parts.whole);
	buf_free(&whole);
	buf_free(&out);
}

static void test_hello_names_the_option_that_differs(void **state)
{
	const struct frame_option options[] = { { EVREC_STR("sinks"), 1 }, { EVREC_STR("sink 1: server"), 2 } };
	struct frame_option others[] = { options[0], options[1] };
	struct buf out = { 0 };
	evrec_str name;
	struct frame f;

	(void)state;
	assert_true(frame_hello(&out, instance, options, 2));
	f = read_back(&out);
	assert_memory_equal(f.instance, instance, FRAME_ID_SIZE);
	assert_true(frame_options_equal(&f, others, 2, &name));
	others[1].hash++;
	assert_false(frame_options_equal(&f, others, 2, &name));
	assert_str(name, "sink 1: server");
	assert_false(frame_options_equal(&f, others, 1, &name));
	assert_str(name, "sink 1: server");
	assert_true(frame_hello(&out, instance, options, 1));
	f = read_back(&out);
	assert_false(frame_options_equal(&f, options, 2, &name));
	assert_str(name, "sink 1: server");
	buf_free(&out);
}

static void test_refusal_and_state_are_read_back(void **state)
{
	struct buf out = { 0 };
	size_t next;
	struct frame f;

	(void)state;
	assert_true(frame_refuse(&out, EVREC_STR("qps"), EVREC_STR("differs")));
	f = read_back(&out);
	assert_str(f.option, "qps");
	assert_str(f.text, "differs");
	assert_true(frame_state(&out, 1, EVREC_STR("state"), 2, &next));
	f = read_back(&out);
	assert_int_equal(f.sink, 1);
	assert_int_equal(f.part.offset, 2);
	assert_str(f.part.bytes, "ate");
	assert_int_equal(next, 5);
	assert_true(frame_error(&out, EVREC_STR("forbidden"), EVREC_STR("kubernetes"), EVREC_STR("POST: 403")));
	f = read_back(&out);
	assert_str(f.problem, "forbidden");
	assert_str(f.sink_name, "kubernetes");
	assert_str(f.text, "POST: 403");
	assert_true(frame_begin(&out, FRAME_BYE, FRAME_HEIR));
	assert_int_equal(read_back(&out).flags, FRAME_HEIR);
	assert_true(frame_begin(&out, FRAME_BYE, FRAME_HEIR | FRAME_UNSURE));
	assert_int_equal(read_back(&out).flags, FRAME_HEIR | FRAME_UNSURE);
	buf_free(&out);
}

static void test_other_version_is_told(void **state)
{
	struct buf out = { 0 };
	uint32_t version = FRAME_VERSION + 1;

	(void)state;
	assert_true(frame_hello(&out, instance, NULL, 0));
	memcpy(out.data + 12, &version, sizeof(version));
	check_broken(buf_str(&out), "the peer is evrec " EVREC_VERSION ", with version 6");
	/* Version 2 had other bytes in place of evrec's version. */
	version = 2;
	memcpy(out.data + 12, &version, sizeof(version));
	memset(out.data + 16, 0xff, 16);
	check_broken(buf_str(&out), "the peer is evrec of an earlier version, with version 2");
	out.data[8]++;
	check_broken(buf_str(&out), "greeting");
	buf_free(&out);
}

static void test_frame_of_a_wrong_size_or_kind_is_refused(void **state)
{
	const struct frame_times never = { 1, 0, T0, T0 };
	struct buf out = { 0 };
	size_t next;

	(void)state;
	check_broken(EVREC_STR("1234567"), "no frame");
	assert_true(frame_begin(&out, FRAME_BATCH + 1, 0));
	check_broken(buf_str(&out), "unknown type");
	assert_true(frame_begin(&out, FRAME_BYE, 2));
	check_broken(buf_str(&out), "unknown flag");
	assert_true(frame_begin(&out, FRAME_FLUSH, 0));
	buf_put(&out, "x", 1);
	check_broken(buf_str(&out), "too long");
	assert_true(frame_begin(&out, FRAME_BATCH, 0));
	check_broken(buf_str(&out), "a batch of a wrong size");
	assert_true(frame_batch(&out, 7));
	buf_put(&out, "x", 1);
	check_broken(buf_str(&out), "a batch of a wrong size");
	assert_true(frame_begin(&out, FRAME_MORE, 0));
	check_broken(buf_str(&out), "wrong size");
	frame_add_times(&out, &never);
	buf_put(&out, "x", 1);
	check_broken(buf_str(&out), "wrong size");
	assert_true(frame_begin(&out, FRAME_ACK, 0));
	frame_add_ack(&out, &(struct frame_ack){ 1, 1, FRAME_SINKS, 0, 0 });
	check_broken(buf_str(&out), "unknown end");
	assert_true(frame_begin(&out, FRAME_ACK, 0));
	frame_add_ack(&out, &(struct frame_ack){ 1, 1, 0, FRAME_ENDS, 0 });
	check_broken(buf_str(&out), "unknown end");
	assert_true(frame_event(&out, 0, &never, EVREC_STR("x"), 0, &next));
	check_broken(buf_str(&out), "did not happen");
	assert_true(frame_state(&out, FRAME_SINKS, EVREC_STR("x"), 0, &next));
	check_broken(buf_str(&out), "no sink");
	assert_true(frame_state(&out, 0, EVREC_STR("x"), 0, &next));
	buf_put(&out, "y", 1);
	check_broken(buf_str(&out), "does not fit");
	/* Its place is behind the end of the whole. */
	assert_true(frame_state(&out, 0, EVREC_STR("x"), 0, &next));
	out.data[out.len - 5] = 2;
	out.data[out.len - 2] = 2;
	check_broken(buf_str(&out), "does not fit");
	buf_free(&out);
}

/* ---- memory ---- */

static void scenario(void)
{
	evrec_fields f = example();
	struct buf out = { 0 };
	struct frame_event event;
	evrec_error err = { 0 };
	int code;

	alloc_failure_arm();
	frame_event_put(&out, &f, NULL, 0);
	alloc_failure_check(!out.failed);
	if (!out.failed) {
		code = frame_event_read(buf_str(&out), &event, &err);
		alloc_failure_check_error(code == 0, &err);
		if (code == 0) {
			frame_event_destroy(&event);
		}
	}
	alloc_failure_disarm();
	buf_free(&out);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_is_read_back),
		cmocka_unit_test(test_bytes_of_an_event_are_its_identity),
		cmocka_unit_test(test_event_is_checked_as_a_recording_call_is),
		cmocka_unit_test(test_event_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(test_more_pairs_than_there_are_bytes_are_refused),
		cmocka_unit_test(test_occurrences_and_their_ends_are_read_back),
		cmocka_unit_test(test_long_event_is_split_and_put_together),
		cmocka_unit_test(test_hello_names_the_option_that_differs),
		cmocka_unit_test(test_refusal_and_state_are_read_back),
		cmocka_unit_test(test_other_version_is_told),
		cmocka_unit_test(test_frame_of_a_wrong_size_or_kind_is_refused),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
