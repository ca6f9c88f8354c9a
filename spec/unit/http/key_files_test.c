/* The files of a client certificate are written anew, and what the server is shown then. */
#define _GNU_SOURCE

#include "http2_server.h"
#include "http_fixture.h"
#include "tmpdir.h"

#include "http/credentials.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* A client with the files of a certificate, and a server that reads the certificate's serial number. */
struct fixture {
	struct http_fixture http;
	struct http2_server server;
	void *dir; /* *state of tmpdir */
	char certificate[512], key[512];
	atomic_long serial; /* of the last request's connection */
	atomic_int status;  /* of the next answer */
};

/* A certificate of the key in pem_data.h that signs itself, in PEM form. */
static void make_certificate(long serial, char *pem, size_t size)
{
	BIO *in = BIO_new_mem_buf(PEM_KEY, -1), *out = BIO_new(BIO_s_mem());
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
	X509 *x509 = X509_new();
	int len;

	(void)ASN1_INTEGER_set(X509_get_serialNumber(x509), serial);
	(void)X509_gmtime_adj(X509_getm_notBefore(x509), 0);
	(void)X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
	(void)X509_set_pubkey(x509, key);
	assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(out, x509), 1);
	len = BIO_read(out, pem, (int)size - 1);
	assert_in_range(len, 1, size - 2);
	pem[len] = '\0';
	X509_free(x509);
	EVP_PKEY_free(key);
	(void)BIO_free(in);
	(void)BIO_free(out);
}

static void write_certificate(struct fixture *f, long serial)
{
	char pem[4096];

	make_certificate(serial, pem, sizeof(pem));
	tmpdir_write_file(f->certificate, pem);
}

static int accept_any(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

static void serve(SSL *connection, unsigned n, void *ctx)
{
	struct fixture *f = ctx;
	X509 *peer = SSL_get_peer_certificate(connection);
	long serial = peer == NULL ? 0 : ASN1_INTEGER_get(X509_get_serialNumber(peer));
	uint32_t stream;

	(void)n;
	X509_free(peer);
	while ((stream = h2_next_request(connection)) != 0) {
		struct buf frames = { 0 };

		atomic_store(&f->serial, serial);
		h2_put_response(&frames, stream, atomic_load(&f->status), "");
		(void)h2_send(connection, &frames);
		buf_free(&frames);
	}
}

static void open_fixture(struct fixture *f, void *dir)
{
	char pem[4096];

	*f = (struct fixture){ .dir = dir, .status = 201 };
	(void)snprintf(f->certificate, sizeof(f->certificate), "%s", tmpdir_path(dir, "tls.crt"));
	(void)snprintf(f->key, sizeof(f->key), "%s", tmpdir_path(dir, "tls.key"));
	make_certificate(1, pem, sizeof(pem));
	tmpdir_write_file(f->certificate, pem);
	tmpdir_write_file(f->key, PEM_KEY);
	http2_server_start(&f->server, serve, f);
	(void)SSL_CTX_set_num_tickets(f->server.tls, 0);
	SSL_CTX_set_verify(f->server.tls, SSL_VERIFY_PEER, accept_any);
	f->http.options = (struct http_options){ .server = str_from(f->server.url),
		                                 .ca = EVREC_STR(PEM_CERTIFICATE),
		                                 .client_certificate = str_from(pem),
		                                 .client_key = EVREC_STR(PEM_KEY),
		                                 .client_certificate_file = str_from(f->certificate),
		                                 .client_key_file = str_from(f->key),
		                                 .max_in_flight = 32,
		                                 .timeout = SOON };
	http_fixture_open_client(&f->http);
}

static void close_fixture(struct fixture *f)
{
	http_client_free(f->http.client);
	http2_server_stop(&f->server);
}

/* The serial number of the certificate that the server saw with a request. */
static long request(struct fixture *f)
{
	http_fixture_exchange(&f->http);
	assert_int_equal(f->http.response.status, atomic_load(&f->status));
	return atomic_load(&f->serial);
}

static void test_a_new_certificate_is_shown_after_a_401(void **state)
{
	struct fixture f;

	open_fixture(&f, *state);
	assert_int_equal(request(&f), 1);
	write_certificate(&f, 2);
	atomic_store(&f.status, 401);
	assert_int_equal(request(&f), 1);
	http_client_reload_credentials(f.http.client);
	atomic_store(&f.status, 201);
	assert_int_equal(request(&f), 2);
	assert_int_equal(f.server.accepted, 2);
	http_client_reload_credentials(f.http.client); /* the same one: its connection stays */
	assert_int_equal(request(&f), 2);
	assert_int_equal(f.server.accepted, 2);
	close_fixture(&f);
}

static void test_a_new_certificate_is_shown_within_a_second(void **state)
{
	int64_t deadline = unit_mono() + SOON;
	struct fixture f;

	open_fixture(&f, *state);
	assert_int_equal(request(&f), 1);
	write_certificate(&f, 2);
	while (request(&f) != 2) {
		assert_true(unit_mono() < deadline);
		usleep(20000);
	}
	close_fixture(&f);
}

static void test_the_old_one_stays_while_the_files_are_bad(void **state)
{
	struct fixture f;

	open_fixture(&f, *state);
	assert_int_equal(request(&f), 1);
	tmpdir_write_file(f.key, "half");
	write_certificate(&f, 2);
	http_client_reload_credentials(f.http.client);
	assert_int_equal(request(&f), 1);
	assert_int_equal(f.http.warnings, 1);
	unit_check_contains(f.http.warning, "client_key_file: ");
	unit_check_contains(f.http.warning, "no private key in PEM form");
	assert_int_equal(unlink(f.certificate), 0);
	http_client_reload_credentials(f.http.client);
	assert_int_equal(request(&f), 1);
	unit_check_contains(f.http.warning, "client_certificate_file: ");
	unit_check_contains(f.http.warning, "No such file");
	close_fixture(&f);
}

/* A pair in `c`, whose files are looked at; the time is told. */
static void open_credentials(struct credentials *c, struct fixture *f, void *dir)
{
	struct credentials_options options = { .certificate = EVREC_STR("old"), .key = EVREC_STR("old") };

	*f = (struct fixture){ .dir = dir };
	(void)snprintf(f->certificate, sizeof(f->certificate), "%s", tmpdir_path(dir, "tls.crt"));
	(void)snprintf(f->key, sizeof(f->key), "%s", tmpdir_path(dir, "tls.key"));
	tmpdir_write_file(f->certificate, PEM_CERTIFICATE);
	tmpdir_write_file(f->key, PEM_KEY);
	options.certificate_file = str_from(f->certificate);
	options.key_file = str_from(f->key);
	assert_true(credentials_init(c, &options));
}

static bool refresh(struct credentials *c, int64_t now)
{
	evrec_error err;
	bool changed;

	assert_int_equal(credentials_refresh_pair(c, now, &changed, &err), 0);
	return changed;
}

static void test_files_are_looked_at_once_a_second(void **state)
{
	struct credentials c;
	struct fixture f;

	open_credentials(&c, &f, *state);
	assert_true(refresh(&c, 0));
	assert_string_equal(c.certificate, PEM_CERTIFICATE);
	assert_string_equal(c.key, PEM_KEY);
	assert_int_equal(c.version, 2);
	tmpdir_write_file(f.key, PEM_KEY_SEC1);
	assert_false(refresh(&c, EVREC_SECOND - 1));
	assert_true(refresh(&c, EVREC_SECOND));
	assert_string_equal(c.key, PEM_KEY_SEC1);
	assert_int_equal(c.version, 3);
	assert_false(refresh(&c, 2 * EVREC_SECOND));
	tmpdir_write_file(f.key, "half");
	assert_false(refresh(&c, 3 * EVREC_SECOND)); /* it is being written */
	assert_string_equal(c.key, PEM_KEY_SEC1);
	tmpdir_write_file(f.key, PEM_KEY);
	assert_true(refresh(&c, 4 * EVREC_SECOND));
	assert_int_equal(c.version, 4);
	credentials_free(&c);
}

static void test_another_pair_takes_the_place_of_the_files(void **state)
{
	const struct credentials_options given = { .certificate = EVREC_STR(PEM_CERTIFICATE),
		                                   .key = EVREC_STR(PEM_KEY_SEC1) };
	struct credentials c;
	struct fixture f;
	evrec_error err;

	open_credentials(&c, &f, *state);
	assert_int_equal(credentials_replace(&c, &given, &err), 0);
	credentials_reload(&c);
	assert_false(refresh(&c, 0));
	assert_string_equal(c.key, PEM_KEY_SEC1);
	credentials_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_new_certificate_is_shown_after_a_401),
		TMPDIR_TEST(test_a_new_certificate_is_shown_within_a_second),
		TMPDIR_TEST(test_the_old_one_stays_while_the_files_are_bad),
		TMPDIR_TEST(test_files_are_looked_at_once_a_second),
		TMPDIR_TEST(test_another_pair_takes_the_place_of_the_files),
	};

	return cmocka_run_group_tests_name("http: key files", tests, NULL, NULL);
}
