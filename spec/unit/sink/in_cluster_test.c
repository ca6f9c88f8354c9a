/* A Kubernetes sink made of a pod's service account and environment: what is missing or wrong is named. */
#include "pem_data.h"
#include "tmpdir.h"

static void set_address(const char *host, const char *port)
{
	assert_int_equal(
		host != NULL ? setenv("KUBERNETES_SERVICE_HOST", host, 1) : unsetenv("KUBERNETES_SERVICE_HOST"), 0);
	assert_int_equal(
		port != NULL ? setenv("KUBERNETES_SERVICE_PORT", port, 1) : unsetenv("KUBERNETES_SERVICE_PORT"), 0);
}

/* The folder of the test, with the files of a service account. */
static evrec_str account(void *state)
{
	const char *token = tmpdir_path(state, "token");

	set_address("10.0.0.1", "443");
	tmpdir_write_file(token, "secret\n");
	tmpdir_write_file(tmpdir_path(state, "ca.crt"), PEM_CERTIFICATE);
	return (evrec_str){ token, strlen(token) - strlen("/token") };
}

static void check_made(evrec_str folder, const evrec_kubernetes_options *options)
{
	evrec_error err = { 0 };
	evrec_sink *sink = evrec_sink_in_cluster(folder, options, &err);

	assert_string_equal(err.message, "");
	assert_non_null(sink);
	evrec_sink_release(sink);
}

static void check_refused(evrec_str folder, const evrec_kubernetes_options *options, const char *part)
{
	evrec_error err = { 0 };

	assert_null(evrec_sink_in_cluster(folder, options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, part);
}

static void test_takes_any_address(void **state)
{
	static const char *const hosts[] = { "10.0.0.1", "api.example", "fd00::1", "[fd00::1]" };
	evrec_str folder = account(*state);

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		set_address(hosts[i], "6443");
		check_made(folder, NULL);
	}
	set_address("10.0.0.1", "no port");
	check_refused(folder, NULL, "server: ");
}

static void test_names_the_missing_variable(void **state)
{
	evrec_str folder = account(*state);

	set_address(NULL, "443");
	check_refused(folder, NULL, "KUBERNETES_SERVICE_HOST is not set");
	set_address("", "443");
	check_refused(folder, NULL, "KUBERNETES_SERVICE_HOST is not set");
	set_address("10.0.0.1", NULL);
	check_refused(folder, NULL, "KUBERNETES_SERVICE_PORT is not set");
}

static void test_names_the_file_that_cannot_be_read(void **state)
{
	evrec_str folder = account(*state);
	const char *ca = tmpdir_path(*state, "ca.crt"), *token = tmpdir_path(*state, "token");

	tmpdir_write_file(ca, "not a certificate");
	check_refused(folder, NULL, "/ca.crt: no certificate in PEM form");
	assert_int_equal(unlink(ca), 0);
	check_refused(folder, NULL, "/ca.crt: No such file");
	tmpdir_write_file(ca, PEM_CERTIFICATE);
	assert_int_equal(unlink(token), 0);
	check_refused(folder, NULL, "/token: No such file");
	check_refused(EVREC_STR(""), NULL, "/serviceaccount/");
}

static void test_options_take_the_place_of_files(void **state)
{
	evrec_str folder = account(*state);
	evrec_kubernetes_options options;

	assert_int_equal(unlink(tmpdir_path(*state, "ca.crt")), 0);
	evrec_kubernetes_options_init(&options);
	options.ca = EVREC_STR(PEM_CERTIFICATE);
	check_made(folder, &options);
	options.token_file = evrec_string(tmpdir_path(*state, "token"));
	check_made(EVREC_STR("none"), &options);
	options.token_file = EVREC_STR("");
	options.token = EVREC_STR("other");
	check_made(EVREC_STR("none"), &options);
	options.max_in_flight = 0;
	check_refused(folder, &options, "max_in_flight: ");
	options.server = EVREC_STR("https://10.0.0.2");
	check_refused(folder, &options, "server: not together");
}

static void test_a_plugin_takes_the_place_of_the_token(void **state)
{
	const evrec_exec exec = { .command = EVREC_STR("sh"),
		                  .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	evrec_str folder = account(*state);
	evrec_kubernetes_options options;

	evrec_kubernetes_options_init(&options);
	options.exec = &exec;
	check_made(folder, &options);
	options.token = EVREC_STR("other");
	check_refused(folder, &options, "exec: not together with token");
}

static void test_needs_no_authority_if_the_server_is_not_verified(void **state)
{
	evrec_str folder = account(*state);
	evrec_kubernetes_options options;

	assert_int_equal(unlink(tmpdir_path(*state, "ca.crt")), 0);
	evrec_kubernetes_options_init(&options);
	options.insecure_skip_tls_verify = true;
	check_made(folder, &options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_takes_any_address),
		TMPDIR_TEST(test_names_the_missing_variable),
		TMPDIR_TEST(test_names_the_file_that_cannot_be_read),
		TMPDIR_TEST(test_options_take_the_place_of_files),
		TMPDIR_TEST(test_a_plugin_takes_the_place_of_the_token),
		TMPDIR_TEST(test_needs_no_authority_if_the_server_is_not_verified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
