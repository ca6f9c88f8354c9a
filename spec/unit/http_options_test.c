/* Options and token files that are refused, with a message that names the option and no secret. */
#define _GNU_SOURCE

#include "http_fixture.h"

static void refuse(const evrec_kubernetes_options *options, const char *message)
{
	evrec_error err = { 0 };

	assert_int_equal(http_check_options(options, &err), EVREC_EINVALID);
	if (strncmp(err.message, message, strlen(message)) != 0) {
		fail_msg("expected \"%s\", got \"%s\"", message, err.message);
	}
	assert_null(strstr(err.message, "s3cret"));
	assert_null(http_transport_new(options, encode, NULL));
}

#define REFUSE(message, ...)                                                                                           \
	do {                                                                                                           \
		evrec_kubernetes_options o;                                                                            \
		options_of(&o, "https://[::1]:6443/prefix");                                                           \
		assert_int_equal(http_check_options(&o, NULL), 0);                                                     \
		__VA_ARGS__;                                                                                           \
		refuse(&o, message);                                                                                   \
	} while (0)

static void test_options(void **state)
{
	static const char *servers[] = { "",
		                         "127.0.0.1:6443",
		                         "ftp://host",
		                         "https://",
		                         "https:///path",
		                         "HTTPS",
		                         "file:///etc",
		                         "https://user@host",
		                         "https://user:s3cret@host",
		                         "https://host?x",
		                         "https://host/#x",
		                         "https://ho st",
		                         "https://host\r\nX: y",
		                         "https://host\\@other",
		                         "https://host:port",
		                         "https://host:99999" };
	const char nul[] = { 's', '3', 'c', 'r', 'e', 't', '\0', 'x' };

	(void)state;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		REFUSE("server: ", o.server = str_from(servers[i]));
	}
	REFUSE("token: ", o.token = EVREC_STR("s3cret\r\nX-Other: y"));
	REFUSE("token: ", o.token = EVREC_STR("s3cret x"));
	REFUSE("token: ", o.token = EVREC_STR("s3cret\x80"));
	REFUSE("token: ", o.token = ((evrec_str){ nul, sizeof(nul) }));
	REFUSE("token_file: ", o.token_file = ((evrec_str){ nul, sizeof(nul) }));
	REFUSE("ca: ", o.ca = EVREC_STR("not a certificate"));
	REFUSE("client_certificate: needs client_key", o.client_certificate = EVREC_STR("-----BEGIN CERTIFICATE-----"));
	REFUSE("client_key: needs client_certificate", o.client_key = EVREC_STR("-----BEGIN KEY-----"));
	REFUSE("client_key: no key", o.client_key = EVREC_STR("s3cret"));
	REFUSE("max_in_flight: ", o.max_in_flight = 0);
	REFUSE("max_in_flight: ", o.max_in_flight = 1001);
	REFUSE("max_pending: ", o.limits.max_pending = 0);
	REFUSE("max_pending: ", o.limits.max_pending = 10000001);
	REFUSE("timeout: ", o.timeout = 0);
	REFUSE("timeout: ", o.timeout = -1);
	REFUSE("timeout: ", o.timeout = 3601 * EVREC_SECOND);
}

static void test_token_file_read(void **state)
{
	char path[] = P_tmpdir "/evrec-token-XXXXXX";
	static const char *bad[] = { "", "\n", "two words", "two\nlines", "\x7f", "\xc3\xa4" };
	char *token, *longer = malloc(70000);
	evrec_error err;

	(void)state;
	close(mkstemp(path));
	write_token(path, "\t token \r\n");
	token = token_file_read(path, &err);
	assert_string_equal(token, "token");
	mem_free(token);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_token(path, bad[i]);
		assert_null(token_file_read(path, &err));
		assert_int_equal(err.code, EVREC_EINVALID);
		assert_memory_equal(err.message, "token_file: ", 12);
	}
	memset(longer, 'a', 69999);
	longer[69999] = '\0';
	write_token(path, longer);
	assert_null(token_file_read(path, &err));
	free(longer);
	unlink(path);
	assert_null(token_file_read(path, &err));
	assert_non_null(strstr(err.message, "No such file"));
	assert_null(token_file_read(P_tmpdir, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_token_file_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
