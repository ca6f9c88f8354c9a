/* The ExecCredential that a plugin prints: what is taken from it, and what is refused. */
#include "unit.h"

#include "exec/credential.h"

#define V1 "client.authentication.k8s.io/v1"
#define CREDENTIAL(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"

static void check_read(const char *json, const char *token, const char *certificate, int64_t expires)
{
	struct exec_credential c;
	evrec_error err = { 0 };

	assert_int_equal(exec_credential_read(str_from(json), V1, &c, &err), 0);
	assert_string_equal(c.token == NULL ? "none" : c.token, token);
	assert_string_equal(c.certificate == NULL ? "none" : c.certificate, certificate);
	assert_int_equal(c.key == NULL, c.certificate == NULL);
	assert_int_equal(c.expires, expires);
	exec_credential_destroy(&c);
}

static void check_refused(const char *json, const char *part)
{
	struct exec_credential c;
	evrec_error err = { 0 };

	assert_int_equal(exec_credential_read(str_from(json), V1, &c, &err), EVREC_EINVALID);
	unit_check_contains(err.message, "its output is no ExecCredential: ");
	unit_check_contains(err.message, part);
	assert_null(strstr(err.message, "secret"));
}

static void test_credentials_are_read(void **state)
{
	(void)state;
	check_read(CREDENTIAL("{\"token\":\"t\"}"), "t", "none", EVREC_UNSET);
	check_read(CREDENTIAL("{\"token\":\"t\",\"clientCertificateData\":null,\"expirationTimestamp\":null}"), "t",
	           "none", EVREC_UNSET);
	check_read(CREDENTIAL("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}") "\n", "none", "c",
	           EVREC_UNSET);
	check_read(CREDENTIAL("{\"token\":\"t\",\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\","
	                      "\"expirationTimestamp\":\"2023-11-14T22:13:20Z\"}"),
	           "t", "c", T0);
}

static void check_expiry(const char *time, int64_t expires)
{
	char json[256];

	(void)snprintf(json, sizeof(json), CREDENTIAL("{\"token\":\"t\",\"expirationTimestamp\":\"%s\"}"), time);
	check_read(json, "t", "none", expires);
}

static void test_a_time_beyond_the_range_is_never_or_long_ago(void **state)
{
	(void)state;
	check_expiry("2262-04-11T23:47:16Z", INT64_MAX / EVREC_SECOND * EVREC_SECOND);
	check_expiry("2262-04-12T00:00:00Z", EVREC_UNSET);
	check_expiry("9999-12-31T23:59:59Z", EVREC_UNSET);
	check_expiry("9999-12-31T23:59:59.999999999-23:59", EVREC_UNSET);
	check_expiry("1677-01-01T00:00:00Z", INT64_MIN + 1);
	check_expiry("0001-01-01T00:00:00Z", INT64_MIN + 1);
	check_refused(CREDENTIAL("{\"token\":\"secret\",\"expirationTimestamp\":\"9999-02-29T23:59:59Z\"}"),
	              "'expirationTimestamp'");
}

static void test_others_are_refused_without_a_word_of_them(void **state)
{
	(void)state;
	check_refused("", "no JSON object");
	check_refused("secret", "no JSON object");
	check_refused("[\"secret\"]", "no JSON object");
	check_refused(CREDENTIAL("{\"token\":\"secret\"}") "secret", "no JSON object");
	check_refused(CREDENTIAL("{\"token\":\"secret\\u0000\"}"), "no JSON object");
	check_refused("{\"kind\":\"secret\",\"apiVersion\":\"" V1 "\",\"status\":{\"token\":\"secret\"}}", "'kind'");
	check_refused("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\",\"status\":{\"token\":\"secret\"}}",
	              "'apiVersion' is not the kubeconfig's, " V1);
	check_refused("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "no token");
	check_refused(CREDENTIAL("[]"), "no token");
	check_refused(CREDENTIAL("{\"token\":\"\"}"), "no token");
	check_refused(CREDENTIAL("{\"token\":[\"secret\"]}"), "no token");
	check_refused(CREDENTIAL("{\"clientKeyData\":\"secret\"}"), "go together");
	check_refused(CREDENTIAL("{\"token\":\"secret\",\"clientCertificateData\":\"secret\"}"), "go together");
	check_refused(CREDENTIAL("{\"token\":\"secret\",\"expirationTimestamp\":\"secret\"}"), "'expirationTimestamp'");
	check_refused(CREDENTIAL("{\"token\":\"secret\",\"expirationTimestamp\":5}"), "'expirationTimestamp'");
}

static void test_without_memory_there_is_nothing_to_free(void **state)
{
	const char *json = CREDENTIAL("{\"token\":\"t\",\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}");
	struct unit_allocator allocator = { 0 };
	struct exec_credential c;
	evrec_error err;

	(void)state;
	evrec_set_allocator(unit_realloc, &allocator);
	for (size_t i = 1; i <= 3; i++) {
		allocator = (struct unit_allocator){ 0, i };
		assert_int_equal(exec_credential_read(str_from(json), V1, &c, &err), EVREC_ENOMEM);
		assert_null(c.token);
	}
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_credentials_are_read),
		cmocka_unit_test(test_a_time_beyond_the_range_is_never_or_long_ago),
		cmocka_unit_test(test_others_are_refused_without_a_word_of_them),
		cmocka_unit_test(test_without_memory_there_is_nothing_to_free),
	};

	return cmocka_run_group_tests_name("exec: credential", tests, NULL, NULL);
}
