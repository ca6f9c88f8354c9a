/* Questions and answers of a peer that sends what no process of evrec sends. */
#include "ask_world.h"

#include <unistd.h>

#include "raw_connection.h"
#include "share/explained.h"

/* A connection to the owner, past the greeting. */
static int greet(const struct ask_world *w)
{
	const unsigned char instance[FRAME_ID_SIZE] = "x";
	struct buf hello = { 0 };
	const int fd = raw_connect(w->name);

	assert_true(fd >= 0);
	assert_true(frame_hello(&hello, instance, &ask_option, 1));
	assert_int_equal(endpoint_send(fd, hello.data, hello.len), 1);
	buf_free(&hello);
	return fd;
}

static void test_question_of_nonsense_ends_the_connection_alone(void **state)
{
	struct buf frame = { 0 };
	struct ask_world w;
	int fd;

	(void)state;
	ask_start_two(&w);
	fd = greet(&w);
	assert_true(frame_ask(&frame, 1, EVREC_STR("\x07")));
	frame_set_seq(&frame, 1);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	ask_step(&w, 3);
	assert_int_equal(w.processes[0].asked, 0);
	assert_true(endpoint_send(fd, frame.data, frame.len) < 0);
	(void)close(fd);
	assert_true(ask_owner(&w.processes[1], "web-0"));
	ask_step(&w, 3);
	ask_check_answered(&w.processes[1], 100);
	buf_free(&frame);
	ask_stop_two(&w);
}

/* Questions of a peer that reads no answers: it is read no more, and others are served. */
static void test_peer_that_reads_nothing_is_read_no_more(void **state)
{
	struct buf frame = { 0 }, object = { 0 };
	struct ask_world w;
	uint32_t sent = 0;
	int fd;

	(void)state;
	ask_start_two(&w);
	w.processes[0].answer_len = 1000000;
	fd = greet(&w);
	explained_put_object(&object, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(frame_ask(&frame, sent + 1, buf_str(&object)));
		frame_set_seq(&frame, sent + 1);
		sent += endpoint_send(fd, frame.data, frame.len) > 0;
		ask_step(&w, 1);
	}
	assert_int_equal(w.processes[0].asked, 1);
	assert_true(ask_owner(&w.processes[1], "web-0"));
	ask_step(&w, 50);
	ask_check_answered(&w.processes[1], 1000000);
	(void)close(fd);
	buf_free(&frame);
	buf_free(&object);
	ask_stop_two(&w);
}

/* An owner that answers what nobody has asked, in parts that do not fit. */
static void test_answer_to_no_question_is_ignored(void **state)
{
	const unsigned char instance[FRAME_ID_SIZE] = "x";
	struct endpoint endpoint;
	struct buf frame = { 0 };
	struct ask_world w;
	struct ask_process *worker = &w.processes[1];
	evrec_error err = { 0 };
	size_t next;
	int fd;

	(void)state;
	ask_make_world(&w);
	assert_int_equal(endpoint_init(&endpoint, str_from(w.name), &err), 0);
	assert_int_equal(endpoint_bind(&endpoint, &err), ENDPOINT_OK);
	assert_true(ask_start(&w, 1, &err));
	ask_step(&w, 1);
	fd = raw_accept(&endpoint);
	assert_true(fd >= 0);
	assert_true(frame_hello(&frame, instance, &ask_option, 1));
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	assert_true(frame_answer(&frame, 0, EVREC_STR("xy"), 1, &next));
	frame_set_seq(&frame, 1);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	ask_step(&w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	/* But a part out of its turn of an answer that is waited for ends the connection. */
	assert_true(ask_owner(worker, "web-0"));
	ask_step(&w, 1);
	assert_true(frame_answer(&frame, 1, EVREC_STR("xy"), 1, &next));
	frame_set_seq(&frame, 2);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	assert_int_equal(worker->errors, 0);
	ask_step(&w, 1);
	assert_int_equal(worker->errors, 1);
	assert_int_equal(share_role(worker->share), SHARE_UNKNOWN);
	(void)close(fd);
	ask_stop_two(&w);
	endpoint_close(&endpoint);
	buf_free(&frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question_of_nonsense_ends_the_connection_alone),
		cmocka_unit_test(test_peer_that_reads_nothing_is_read_no_more),
		cmocka_unit_test(test_answer_to_no_question_is_ignored),
	};

	return cmocka_run_group_tests_name("ask nonsense", tests, NULL, NULL);
}
