/* Certificates and keys in PEM form: faults are found before libcurl sees them. */
#include "pem_data.h"
#include "unit.h"

#include "http/pem.h"

static void check_key(const char *pem, const char *fault)
{
	const char *found = pem_key_fault(str_from(pem));

	if (fault == NULL) {
		assert_null(found);
	} else {
		assert_non_null(found);
		assert_non_null(strstr(found, fault));
	}
}

static void test_valid_keys_have_no_fault(void **state)
{
	(void)state;
	check_key(PEM_KEY, NULL);
	check_key(PEM_KEY_SEC1, NULL);
	check_key(PEM_CERTIFICATE PEM_KEY, NULL);
	check_key("some words\r\n" PEM_KEY "\n", NULL);
}

/* OpenSSL would ask for a passphrase on the terminal. */
static void test_encrypted_keys_are_refused(void **state)
{
	(void)state;
	check_key(PEM_KEY_ENCRYPTED, "is encrypted");
	check_key(PEM_KEY_SEC1_ENCRYPTED, "is encrypted");
	check_key(PEM_CERTIFICATE PEM_KEY_ENCRYPTED, "is encrypted");
	check_key("-----BEGIN RSA PRIVATE KEY-----\nProc-Type:\t4, ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n"
	          "-----END RSA PRIVATE KEY-----\n",
	          "is encrypted");
}

#define BLOCK(label, text) "-----BEGIN " label "-----\n" text "\n-----END " label "-----\n"

static void test_damaged_or_missing_keys_are_refused(void **state)
{
	static const char *const none[] = {
		"", "key", "-----BEGIN ", "-----BEGIN PRIVATE KEY", PEM_CERTIFICATE, BLOCK("PUBLIC KEY", "MAMCAQA=")
	};
	static const char *const bad[] = {
		"-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nMAYCAQAEAQA=\n",
		BLOCK("PRIVATE KEY", ""),
		BLOCK("PRIVATE KEY", "MAYCAQAEAQ=="),
		BLOCK("PRIVATE KEY", "MAYCAQAEAQAA"),
		BLOCK("PRIVATE KEY", "AAYCAQAEAQA="),
		BLOCK("PRIVATE KEY", "MAYC*QAEAQA="),
		BLOCK("PRIVATE KEY", "MIAAAAAAAAA="),
		BLOCK("OPENSSH PRIVATE KEY", "b3BlbnNzaC1rZXktdjEAAAAA"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		check_key(none[i], "no private key in PEM form");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check_key(bad[i], "not a private key that can be read");
	}
	check_key(BLOCK("PRIVATE KEY", "MAYCAQAE AQA="), NULL);
	assert_non_null(pem_key_fault(EVREC_STR(PEM_KEY "\0")));
}

static void test_certificates_need_a_pem_block(void **state)
{
	(void)state;
	assert_null(pem_certificate_fault(EVREC_STR(PEM_CERTIFICATE)));
	assert_null(pem_certificate_fault(EVREC_STR("-----BEGIN TRUSTED CERTIFICATE-----")));
	assert_non_null(pem_certificate_fault(EVREC_STR("")));
	assert_non_null(pem_certificate_fault(EVREC_STR("certificate")));
	assert_non_null(pem_certificate_fault(EVREC_STR(PEM_CERTIFICATE "\0")));
	assert_non_null(
		strstr(pem_certificate_fault(EVREC_STR("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n")),
	               "is encrypted"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_keys_have_no_fault),
		cmocka_unit_test(test_encrypted_keys_are_refused),
		cmocka_unit_test(test_damaged_or_missing_keys_are_refused),
		cmocka_unit_test(test_certificates_need_a_pem_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
