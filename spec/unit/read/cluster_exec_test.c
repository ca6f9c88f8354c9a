/* A cluster whose credentials a plugin gets. */
#include "http_server.h"
#include "tmpdir.h"

#include "evrec_read.h"

#include <sys/stat.h>

#define SHORT (EVREC_SECOND / 20)
#define PEM(label, base64) "-----BEGIN " label "-----\\n" base64 "\\n-----END " label "-----"
/* Each run appends a line to the file. */
#define PLUGIN                                                                                                         \
	"echo run >>\"$0\"; cat <<'E'\n"                                                                               \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{"                 \
	"\"clientCertificateData\":\"" PEM("CERTIFICATE", "AAAA") "\",\"clientKeyData\":\"" PEM(                       \
		"PRIVATE KEY", "MAQAAAAA") "\"}}\nE\n"

static size_t runs(void *dir)
{
	struct stat found;

	assert_int_equal(stat(tmpdir_path(dir, "runs"), &found), 0);
	return (size_t)found.st_size / strlen("run\n");
}

static evrec_source *open_source(const char *url, void *dir)
{
	const evrec_str args[] = { EVREC_STR("-c"), EVREC_STR(PLUGIN), str_from(tmpdir_path(dir, "runs")) };
	const evrec_exec exec = { .command = EVREC_STR("sh"),
		                  .args = args,
		                  .args_len = 3,
		                  .api_version = EVREC_STR("client.authentication.k8s.io/v1") };
	evrec_kubernetes_options options;
	evrec_source *source;
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = str_from(url);
	options.exec = &exec;
	sink = evrec_sink_kubernetes(&options, NULL);
	source = evrec_source_cluster(sink, NULL);
	assert_non_null(source);
	evrec_sink_release(sink);
	return source;
}

/* It is no certificate, which shows when libcurl uses it. */
static void test_a_certificate_that_cannot_be_used_brings_a_new_run(void **state)
{
	struct http_server server;
	evrec_source *source;
	evrec_reader *reader;
	evrec_query query;
	evrec_error err;
	char url[64];

	tmpdir_write_file(tmpdir_path(*state, "runs"), "");
	http_server_bind(&server, "");
	http_server_start(&server, TURNS({ TURN_REPLY, HTTP_REPLY("200 OK", "", "{\"items\":[]}") }));
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", server.port);
	source = open_source(url, *state);
	evrec_query_init(&query);
	reader = evrec_source_query(source, &query, NULL);
	assert_non_null(reader);
	while (runs(*state) < 2) {
		if (evrec_reader_begin(reader, SHORT, &err) == EVREC_ESYSTEM) {
			fail_msg("%s", err.message);
		}
	}
	evrec_reader_free(reader);
	evrec_source_release(source);
	http_server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_certificate_that_cannot_be_used_brings_a_new_run),
	};

	return cmocka_run_group_tests_name("read: a cluster with a plugin", tests, NULL, NULL);
}
