/* Every allocation fails once: the making of an HTTP client. */
#include "alloc_failure.h"

#include "http/curl.h"
#include "http/http_client.h"

static void on_done(void *owner, void *ctx, const struct http_response *response)
{
	(void)owner;
	(void)ctx;
	(void)response;
}

static void make_client(void)
{
	const evrec_pair header = { EVREC_STR("x-key"), EVREC_STR("value") };
	const struct http_events events = { .done = on_done };
	const struct http_options options = {
		.server = EVREC_STR("https://127.0.0.1:1/"),
		.token = EVREC_STR("token"),
		.headers = { &header, 1 },
		.accept = "application/json",
		.encoding = "gzip",
		.max_in_flight = 1,
		.timeout = EVREC_SECOND,
	};
	struct http_client *client;
	evrec_error err = { 0 };

	alloc_failure_arm();
	client = http_client_new(&options, &events, NULL, &err);
	alloc_failure_check_error(client != NULL, &err);
	alloc_failure_disarm();
	http_client_free(client);
}

static void test_client_is_made_or_leaves_nothing(void **state)
{
	(void)state;
	assert_true(curl_load(NULL));
	alloc_failure_run(make_client, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client_is_made_or_leaves_nothing),
	};

	return cmocka_run_group_tests_name("memory: http", tests, NULL, NULL);
}
