/* The options of evrec_sink_otlp: an invalid one is refused by name, and no secret is told. */
#include "otlp_fixture.h"
#include "pem_data.h"

#include "sink/fingerprint.h"

static void check_refused(const evrec_otlp_options *options, const char *beginning)
{
	evrec_error err = { 0 };

	assert_null(evrec_sink_otlp(options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	if (strncmp(err.message, beginning, strlen(beginning)) != 0) {
		fail_msg("expected \"%s\", got \"%s\"", beginning, err.message);
	}
	assert_null(strstr(err.message, "s3cret"));
}

#define CHECK_REFUSED(beginning, ...)                                                                                  \
	do {                                                                                                           \
		evrec_otlp_options o;                                                                                  \
		evrec_otlp_options_init(&o);                                                                           \
		__VA_ARGS__;                                                                                           \
		check_refused(&o, beginning);                                                                          \
	} while (0)

static void test_invalid_endpoints_are_refused(void **state)
{
	static const char *const endpoints[] = { "",
		                                 "localhost:4318",
		                                 "http://",
		                                 "http:///v1/logs",
		                                 "ftp://host/v1/logs",
		                                 "http://user:s3cret@host/v1/logs",
		                                 "http://host/v1 logs",
		                                 "http://host/v1/logs\r\nX: s3cret",
		                                 "http://host/v1/logs#s3cret",
		                                 "http://host\\x/v1",
		                                 "http://host/v1\\logs",
		                                 "http://host/\xC3\xA9",
		                                 "http://host:99999/v1/logs" };

	(void)state;
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
		CHECK_REFUSED("endpoint: ", o.endpoint = str_from(endpoints[i]));
	}
#define EXPECTED "endpoint: expected a whole URL such as http://localhost:4318/v1/logs"
	CHECK_REFUSED(EXPECTED, o.endpoint = EVREC_STR(""));
	CHECK_REFUSED(EXPECTED, o.endpoint = EVREC_STR("localhost:4318"));
	CHECK_REFUSED(EXPECTED, o.endpoint = EVREC_STR("http:///v1/logs"));
}

static void test_invalid_numbers_are_refused(void **state)
{
	(void)state;
	CHECK_REFUSED("timeout: ", o.timeout = 0);
	CHECK_REFUSED("batch_max: ", o.batch_max = 0);
	CHECK_REFUSED("batch_max: ", o.batch_max = 65537);
	CHECK_REFUSED("batch_bytes: ", o.batch_bytes = 1023);
	CHECK_REFUSED("batch_bytes: ", o.batch_bytes = 16 * 1024 * 1024 + 1);
	CHECK_REFUSED("batch_delay: ", o.batch_delay = -1);
	CHECK_REFUSED("batch_delay: ", o.batch_delay = 3600 * EVREC_SECOND + 1);
	CHECK_REFUSED("min_interval: ", o.min_interval = -1);
	CHECK_REFUSED("encoding: ", o.encoding = (enum evrec_otlp_encoding)2);
	CHECK_REFUSED("compression: ", o.compression = (enum evrec_otlp_compression)2);
	CHECK_REFUSED("max_pending: ", o.common.limits.max_pending = 0);
}

static void test_invalid_maps_are_refused(void **state)
{
	const evrec_pair host = { EVREC_STR("Host"), EVREC_STR("s3cret") };
	const evrec_pair spaced = { EVREC_STR("a s3cret"), EVREC_STR("b") };
	const evrec_pair line = { EVREC_STR("x"), EVREC_STR("s3cret\r\n") };
	const evrec_pair same[] = { { EVREC_STR("service.name"), EVREC_STR("a") },
		                    { EVREC_STR("service.name"), EVREC_STR("b") } };
	const evrec_pair unnamed = { EVREC_STR(""), EVREC_STR("a") };
	const evrec_pair no_utf8 = { EVREC_STR("a"), EVREC_STR("\xFF") };
	evrec_pair many[65];

	(void)state;
	CHECK_REFUSED("headers: Host", o.headers = (evrec_map){ &host, 1 });
	CHECK_REFUSED("headers: number 1: its name is not a header's name", o.headers = (evrec_map){ &spaced, 1 });
	CHECK_REFUSED("headers: x: ", o.headers = (evrec_map){ &line, 1 });
	CHECK_REFUSED("resource: ", o.resource = (evrec_map){ same, 2 });
	CHECK_REFUSED("resource: ", o.resource = (evrec_map){ &unnamed, 1 });
	CHECK_REFUSED("resource: ", o.resource = (evrec_map){ &no_utf8, 1 });
	CHECK_REFUSED("resource: ", o.resource = (evrec_map){ many, 65 });
}

static void test_invalid_certificates_are_refused(void **state)
{
	(void)state;
	CHECK_REFUSED("ca: ", o.ca = EVREC_STR("s3cret"));
	CHECK_REFUSED("client_key: ", o.client_key = EVREC_STR("s3cret"));
	CHECK_REFUSED("client_certificate: ", o.client_certificate = EVREC_STR(PEM_CERTIFICATE));
}

static void test_no_options_are_the_defaults(void **state)
{
	evrec_otlp_options options;
	struct fingerprint a = { 0 }, b = { 0 };
	evrec_sink *defaults, *same, *other;

	(void)state;
	evrec_otlp_options_init(&options);
	assert_str(options.endpoint, "http://localhost:4318/v1/logs");
	assert_int_equal(options.batch_max, 512);
	assert_int_equal(options.batch_bytes, 1024 * 1024);
	assert_int_equal(options.batch_delay, EVREC_SECOND);
	assert_int_equal(options.min_interval, 60 * EVREC_SECOND);
	defaults = evrec_sink_otlp(NULL, NULL);
	same = evrec_sink_otlp(&options, NULL);
	options.endpoint = EVREC_STR("http://localhost:4318/v1/logs?x");
	other = evrec_sink_otlp(&options, NULL);
	sink_fingerprint(defaults, &a);
	sink_fingerprint(same, &b);
	assert_null(fingerprint_difference(&a, &b));
	b.len = 0;
	sink_fingerprint(other, &b);
	assert_string_equal(fingerprint_difference(&a, &b), "endpoint");
	assert_string_equal(sink_name(defaults), "otlp");
	evrec_sink_release(defaults);
	evrec_sink_release(same);
	evrec_sink_release(other);
}

static const char *header_difference(const evrec_pair one[2], const evrec_pair other[2])
{
	const evrec_map maps[2] = { { one, 2 }, { other, 2 } };
	struct fingerprint prints[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		evrec_otlp_options options;
		evrec_sink *sink;

		evrec_otlp_options_init(&options);
		options.headers = options.resource = maps[i];
		sink = evrec_sink_otlp(&options, NULL);
		sink_fingerprint(sink, &prints[i]);
		evrec_sink_release(sink);
	}
	return fingerprint_difference(&prints[0], &prints[1]);
}

/* Each Lua state goes through the same table in an order of its own. */
static void test_the_order_of_a_map_is_no_difference(void **state)
{
	const evrec_pair a = { EVREC_STR("a"), EVREC_STR("1") }, b = { EVREC_STR("b"), EVREC_STR("2") };
	const evrec_pair a2 = { a.key, b.value }, b1 = { b.key, a.value };

	(void)state;
	assert_null(header_difference((evrec_pair[]){ a, b }, (evrec_pair[]){ b, a }));
	assert_string_equal(header_difference((evrec_pair[]){ a, b }, (evrec_pair[]){ a2, b1 }), "headers");
}

static void test_options_are_copied(void **state)
{
	char endpoint[] = "http://host/v1/logs", key[] = "x-key", value[] = "s3cret", text[] = "the s3cret";
	const evrec_pair header = { str_from(key), str_from(value) };
	evrec_otlp_options options;
	struct protocol *p;
	evrec_sink *sink;

	(void)state;
	evrec_otlp_options_init(&options);
	options.endpoint = str_from(endpoint);
	options.headers = (evrec_map){ &header, 1 };
	sink = evrec_sink_otlp(&options, NULL);
	memset(endpoint, '#', sizeof(endpoint) - 1);
	memset(key, '#', sizeof(key) - 1);
	memset(value, '#', sizeof(value) - 1);
	p = sink->open(sink, NULL);
	assert_non_null(p);
	sink->hide_secrets(sink, text);
	assert_string_equal(text, "the ******");
	evrec_sink_release(sink);
	p->ops->free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invalid_endpoints_are_refused),
		cmocka_unit_test(test_invalid_numbers_are_refused),
		cmocka_unit_test(test_invalid_maps_are_refused),
		cmocka_unit_test(test_invalid_certificates_are_refused),
		cmocka_unit_test(test_no_options_are_the_defaults),
		cmocka_unit_test(test_the_order_of_a_map_is_no_difference),
		cmocka_unit_test(test_options_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
