/* The connections of an HTTP client, as a whole: what is sent is held back, and goes out at once afterwards. */
#include "unit.h"

#include "http/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Connects a socket, the only one of *s, with one of this process, which is returned. */
static int connect_to_self(struct sockets *s)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM, 0), peer, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct stat st;

	assert_true(listening >= 0 && fd >= 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	peer = accept(listening, NULL, NULL);
	assert_true(peer >= 0);
	(void)close(listening);
	assert_int_equal(fstat(fd, &st), 0);
	*s = (struct sockets){ .of = { { fd, st.st_ino } }, .len = 1 };
	return peer;
}

static bool is_readable(int fd, int milliseconds)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	return poll(&wanted, 1, milliseconds) == 1;
}

static void test_bytes_that_are_held_back_leave_together(void **state)
{
	struct sockets s;
	int peer = connect_to_self(&s);
	char received[16];

	(void)state;
	sockets_hold_back(&s, true);
	assert_int_equal(write(s.of[0].fd, "head", 4), 4);
	assert_int_equal(write(s.of[0].fd, "body", 4), 4);
	assert_false(is_readable(peer, 0));
	sockets_hold_back(&s, false);
	assert_true(is_readable(peer, 10000));
	assert_int_equal(read(peer, received, sizeof(received)), 8);
	assert_memory_equal(received, "headbody", 8);
	(void)close(s.of[0].fd);
	(void)close(peer);
}

/* The host may have opened it since libcurl closed the one of before. */
static void test_another_socket_of_the_same_number_is_left_alone(void **state)
{
	struct sockets s;
	int peer = connect_to_self(&s), fd = s.of[0].fd, on = 1;
	socklen_t len = sizeof(on);

	(void)state;
	assert_int_equal(dup2(peer, fd), fd);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, len), 0);
	sockets_hold_back(&s, true);
	sockets_hold_back(&s, false);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &len), 0);
	assert_int_equal(on, 1);
	assert_int_equal(s.len, 0);
	(void)close(fd);
	(void)close(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_that_are_held_back_leave_together),
		cmocka_unit_test(test_another_socket_of_the_same_number_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
