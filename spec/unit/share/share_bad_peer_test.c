/* Peers that end a connection without a word, or send what is no frame, or one out of its turn. */
#include "share_world.h"

#include <unistd.h>

#include "raw_connection.h"

/* A process that listens there, and ends each connection without a word. */
static void test_owner_without_a_word_is_asked_again_later(void **state)
{
	struct share_world *w = *state;
	struct share_process *worker = share_world_start(w, 0);
	struct endpoint e;
	unsigned connections = 0;

	assert_int_equal(endpoint_init(&e, str_from(w->name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	for (size_t i = 0; i < 10; i++) {
		int fd;

		share_world_step(w, 1);
		fd = raw_accept(&e);
		connections += fd >= 0;
		if (fd >= 0) {
			(void)close(fd);
		}
	}
	assert_int_equal(connections, 1);
	w->now += EVREC_SECOND;
	share_world_step(w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	endpoint_close(&e);
}

static void *fail_to_allocate(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
	}
	return NULL;
}

static void test_worker_without_memory_to_greet_does_not_spin(void **state)
{
	struct share_world *w = *state;
	struct share_process *worker = share_world_start(w, 0);
	struct endpoint e;
	unsigned connections = 0;
	int fd;

	assert_int_equal(endpoint_init(&e, str_from(w->name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	evrec_set_allocator(fail_to_allocate, NULL);
	share_world_step(w, 10);
	evrec_set_allocator(NULL, NULL);
	while ((fd = raw_accept(&e)) >= 0) {
		connections++;
		(void)close(fd);
	}
	assert_int_equal(connections, 1);
	w->now += EVREC_SECOND;
	share_world_step(w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	endpoint_close(&e);
}

/* Bytes that are no frame end the connection, and nothing else. */
static void test_nonsense_ends_the_connection_alone(void **state)
{
	struct share_world *w = *state;
	struct share_process *owner, *worker;
	char answer[256];
	int fd;

	share_world_start_two(w, &owner, &worker);
	fd = raw_connect(w->name);
	assert_true(fd >= 0);
	assert_int_equal(endpoint_send(fd, "nonsense", 8), 1);
	share_world_step(w, 2);
	assert_true(endpoint_receive(fd, answer, sizeof(answer)) > 0);
	assert_int_equal(endpoint_receive(fd, answer, sizeof(answer)), -1);
	(void)close(fd);
	(void)share_process_add(worker, "a");
	share_world_step(w, 3);
	assert_true(share_is_settled(worker->share));
}

static void test_frame_out_of_its_turn_ends_the_connection(void **state)
{
	struct share_world *w = *state;
	struct buf hello = { 0 };
	char answer[256];
	int fd;

	(void)share_world_start(w, 0);
	share_world_step(w, 1);
	fd = raw_connect(w->name);
	assert_true(fd >= 0);
	assert_true(frame_hello(&hello, (const unsigned char *)"0123456789abcdef", share_world_options_a, 1));
	frame_set_seq(&hello, 1);
	assert_int_equal(endpoint_send(fd, hello.data, hello.len), 1);
	share_world_step(w, 2);
	while (endpoint_receive(fd, answer, sizeof(answer)) > 0) {
	}
	assert_int_equal(endpoint_receive(fd, answer, sizeof(answer)), -1);
	(void)close(fd);
	buf_free(&hello);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_WORLD_TEST(test_owner_without_a_word_is_asked_again_later),
		SHARE_WORLD_TEST(test_worker_without_memory_to_greet_does_not_spin),
		SHARE_WORLD_TEST(test_nonsense_ends_the_connection_alone),
		SHARE_WORLD_TEST(test_frame_out_of_its_turn_ends_the_connection),
	};

	return cmocka_run_group_tests_name("share: bad peers", tests, NULL, NULL);
}
