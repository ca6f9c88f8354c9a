/* Invalid options and token files are refused; the message names the option and never its secret. */
#define _GNU_SOURCE

#include "http_fixture.h"
#include "pem_data.h"
#include "tmpdir.h"

#include "http/credentials.h"

static void check_refused(const struct http_options *options, const char *message)
{
	const struct http_events events = { 0 };
	evrec_error err = { 0 };

	assert_int_equal(http_check_options(options, &err), EVREC_EINVALID);
	if (strncmp(err.message, message, strlen(message)) != 0) {
		fail_msg("expected \"%s\", got \"%s\"", message, err.message);
	}
	assert_null(strstr(err.message, "s3cret"));
	assert_null(http_client_new(options, &events, NULL, NULL));
}

#define CHECK_REFUSED(message, ...)                                                                                    \
	do {                                                                                                           \
		struct http_options o;                                                                                 \
		o = (struct http_options){ .server = EVREC_STR("https://[::1]:6443/prefix"),                           \
			                   .max_in_flight = 32,                                                        \
			                   .timeout = EVREC_SECOND };                                                  \
		assert_int_equal(http_check_options(&o, NULL), 0);                                                     \
		__VA_ARGS__;                                                                                           \
		check_refused(&o, message);                                                                            \
	} while (0)

static void test_invalid_options_are_refused(void **state)
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
		CHECK_REFUSED("server: ", o.server = str_from(servers[i]));
	}
	CHECK_REFUSED("token: ", o.token = EVREC_STR("s3cret\r\nX-Other: y"));
	CHECK_REFUSED("token: ", o.token = EVREC_STR("s3cret x"));
	CHECK_REFUSED("token: ", o.token = EVREC_STR("s3cret\x80"));
	CHECK_REFUSED("token: ", o.token = ((evrec_str){ nul, sizeof(nul) }));
	CHECK_REFUSED("token_file: ", o.token_file = ((evrec_str){ nul, sizeof(nul) }));
	CHECK_REFUSED("ca: ", o.ca = EVREC_STR("not a certificate"));
	CHECK_REFUSED("client_certificate: needs client_key",
	              o.client_certificate = EVREC_STR("-----BEGIN CERTIFICATE-----"));
	CHECK_REFUSED("client_key: needs client_certificate", o.client_key = EVREC_STR(PEM_KEY));
	CHECK_REFUSED("client_key: no private key", o.client_key = EVREC_STR("s3cret"));
	CHECK_REFUSED("client_key: is encrypted", o.client_certificate = EVREC_STR(PEM_CERTIFICATE);
	              o.client_key = EVREC_STR(PEM_KEY_ENCRYPTED));
	CHECK_REFUSED("client_key: is encrypted", o.client_certificate = EVREC_STR(PEM_CERTIFICATE);
	              o.client_key = EVREC_STR(PEM_KEY_SEC1_ENCRYPTED));
	CHECK_REFUSED("client_certificate: is encrypted",
	              o.client_certificate = EVREC_STR("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n"));
	CHECK_REFUSED("client_certificate_file: both or none", o.client_certificate_file = EVREC_STR("/tls.crt"));
	CHECK_REFUSED("client_certificate_file: both or none", o.client_key_file = EVREC_STR("/tls.key"));
	CHECK_REFUSED("client_certificate_file: a NUL", o.client_certificate_file = EVREC_STR("/tls.crt");
	              o.client_key_file = ((evrec_str){ nul, sizeof(nul) }));
	CHECK_REFUSED("max_in_flight: ", o.max_in_flight = 0);
	CHECK_REFUSED("max_in_flight: ", o.max_in_flight = 1001);
	CHECK_REFUSED("timeout: ", o.timeout = 0);
	CHECK_REFUSED("timeout: ", o.timeout = -1);
	CHECK_REFUSED("timeout: ", o.timeout = 3601 * EVREC_SECOND);
}

static void test_token_file_is_one_trimmed_word(void **state)
{
	const char *path = tmpdir_path(*state, "token");
	static const char *bad[] = { "", "\n", "two words", "two\nlines", "\x7f", "\xc3\xa4" };
	char *token, *longer = malloc(70000);
	evrec_error err;

	tmpdir_write_file(path, "\t token \r\n");
	token = token_file_read(path, &err);
	assert_string_equal(token, "token");
	mem_free(token);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tmpdir_write_file(path, bad[i]);
		assert_null(token_file_read(path, &err));
		assert_int_equal(err.code, EVREC_EINVALID);
		assert_memory_equal(err.message, "token_file: ", 12);
	}
	memset(longer, 'a', 69999);
	longer[69999] = '\0';
	tmpdir_write_file(path, longer);
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
		cmocka_unit_test(test_invalid_options_are_refused),
		TMPDIR_TEST(test_token_file_is_one_trimmed_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
