/* The addresses of a server's name: looked up early, and used by a client that cannot look the name up. */
#define _GNU_SOURCE

#include "alloc_failure.h"
#include "http_fixture.h"

#include "http/addresses.h"
#include "http/curl.h"

#include <arpa/inet.h>
#include <netdb.h>

#define SOME 20

/* A list of addresses as getaddrinfo returns it. */
struct found {
	struct addrinfo info[SOME];
	struct sockaddr_in v4[SOME];
	struct sockaddr_in6 v6[SOME];
	size_t n;
};

static void link_last(struct found *f, int family, void *address)
{
	f->info[f->n].ai_family = family;
	f->info[f->n].ai_addr = address;
	if (f->n != 0) {
		f->info[f->n - 1].ai_next = &f->info[f->n];
	}
	f->n++;
}

static void add_v4(struct found *f, const char *address)
{
	assert_int_equal(inet_pton(AF_INET, address, &f->v4[f->n].sin_addr), 1);
	link_last(f, AF_INET, &f->v4[f->n]);
}

static void add_v6(struct found *f, const char *address, uint32_t scope)
{
	assert_int_equal(inet_pton(AF_INET6, address, &f->v6[f->n].sin6_addr), 1);
	f->v6[f->n].sin6_scope_id = scope;
	link_last(f, AF_INET6, &f->v6[f->n]);
}

static void check_format(const struct found *f, const char *expected)
{
	evrec_error err = { 0 };
	char *entry = NULL;

	assert_int_equal(addresses_format("api", "6443", f->info, &entry, &err), 0);
	assert_string_equal(entry, expected);
	mem_free(entry);
}

static void test_entry_has_all_addresses_in_their_order(void **state)
{
	struct found f = { .n = 0 };

	(void)state;
	add_v4(&f, "192.0.2.1");
	check_format(&f, "api:6443:192.0.2.1");
	add_v6(&f, "2001:db8::1", 0);
	add_v4(&f, "192.0.2.2");
	check_format(&f, "api:6443:192.0.2.1,[2001:db8::1],192.0.2.2");
}

static void test_entry_has_no_address_with_a_scope(void **state)
{
	struct found f = { .n = 0 };
	evrec_error err = { 0 };
	char *entry = NULL;

	(void)state;
	add_v6(&f, "fe80::1", 2);
	assert_int_equal(addresses_format("api", "6443", f.info, &entry, &err), EVREC_ESYSTEM);
	assert_string_equal(err.message, "no address without a scope");
	assert_null(entry);
	add_v6(&f, "2001:db8::1", 0);
	check_format(&f, "api:6443:[2001:db8::1]");
}

static void test_entry_is_bounded(void **state)
{
	struct buf expected = { 0 };
	struct found f = { .n = 0 };

	(void)state;
	buf_printf(&expected, "api:6443:192.0.2.1");
	for (int i = 0; i < SOME; i++) {
		add_v4(&f, "192.0.2.1");
	}
	for (int i = 1; i < ADDRESSES_MAX; i++) {
		buf_printf(&expected, ",192.0.2.1");
	}
	check_format(&f, buf_cstr(&expected));
	buf_free(&expected);
}

static void check_look_up(const char *server, const char *beginning)
{
	evrec_error err = { 0 };
	char *entry = NULL;

	assert_int_equal(addresses_look_up(str_from(server), &entry, &err), 0);
	if (beginning == NULL) {
		assert_null(entry);
	} else {
		assert_non_null(entry);
		assert_memory_equal(entry, beginning, strlen(beginning));
	}
	mem_free(entry);
}

static void test_only_names_are_looked_up(void **state)
{
	(void)state;
	check_look_up("https://10.0.0.1", NULL);
	check_look_up("https://10.0.0.1:6443/prefix", NULL);
	check_look_up("https://[fd00::1]:6443", NULL);
	check_look_up("https://localhost", "localhost:443:");
	check_look_up("http://localhost/prefix/", "localhost:80:");
	check_look_up("https://localhost:6443", "localhost:6443:");
}

/* The resolver refuses a label of more than 63 bytes without asking any server. */
static void test_name_without_an_address_says_why(void **state)
{
	evrec_error err = { 0 };
	struct buf server = { 0 };
	char *entry = NULL;

	(void)state;
	buf_printf(&server, "https://%064d.invalid", 0);
	assert_int_equal(addresses_look_up(buf_str(&server), &entry, &err), EVREC_ESYSTEM);
	assert_true(err.message[0] != '\0');
	assert_null(entry);
	buf_free(&server);
}

static void look_up_without_memory(void)
{
	evrec_error err = { 0 };
	char *entry = NULL;
	int code;

	alloc_failure_arm();
	code = addresses_look_up(EVREC_STR("https://localhost:6443"), &entry, &err);
	alloc_failure_check_error(code == 0, &err);
	assert_true(code != 0 || entry != NULL);
	alloc_failure_disarm();
	mem_free(entry);
}

static void test_look_up_survives_failures(void **state)
{
	(void)state;
	alloc_failure_run(look_up_without_memory, 3);
}

/* ---- the client ---- */

struct named {
	struct http_fixture http;
	char server[64], entry[96];
};

/* Nothing listens at the first address. */
static void open_named(struct named *n, const struct http_turn *turns, size_t turns_len)
{
	const int port = (http_fixture_prepare(&n->http, ""), n->http.server.port);

	(void)snprintf(n->server, sizeof(n->server), "http://evrec.invalid:%d", port);
	(void)snprintf(n->entry, sizeof(n->entry), "evrec.invalid:%d:[::1],127.0.0.1", port);
	n->http.options.server = str_from(n->server);
	http_server_start(&n->http.server, turns, turns_len);
	http_fixture_open_client(&n->http);
	assert_true(http_client_keep_addresses(n->http.client, n->entry));
}

static void test_each_connection_uses_the_addresses(void **state)
{
	struct named n;

	(void)state;
	open_named(&n, TURNS({ TURN_REPLY, OK("{}") }));
	for (unsigned i = 0; i < 3; i++) {
		http_fixture_exchange(&n.http);
		assert_int_equal(n.http.response.status, 200);
		http_server_check_saw(&n.http.server, i, "Host: evrec.invalid:");
	}
	http_fixture_close(&n.http);
}

/* After an answer that did not come, the client drops all connections, and with them libcurl's own cache of names. */
static void test_addresses_outlive_a_silent_connection(void **state)
{
	struct named n;

	(void)state;
	open_named(&n, TURNS({ TURN_MUTE, NULL }, { TURN_REPLY, OK("{}") }));
	(void)http_fixture_exchange_in_vain(&n.http);
	assert_true(n.http.response.timed_out && !n.http.response.unsent);
	http_fixture_exchange(&n.http);
	assert_string_equal(n.http.response.message, "");
	assert_int_equal(n.http.response.status, 200);
	http_fixture_close(&n.http);
}

/* As http_check_options does before a client has a server. */
static int load_curl(void **state)
{
	(void)state;
	return curl_load(NULL) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry_has_all_addresses_in_their_order),
		cmocka_unit_test(test_entry_has_no_address_with_a_scope),
		cmocka_unit_test(test_entry_is_bounded),
		cmocka_unit_test(test_only_names_are_looked_up),
		cmocka_unit_test(test_name_without_an_address_says_why),
		cmocka_unit_test(test_look_up_survives_failures),
		cmocka_unit_test(test_each_connection_uses_the_addresses),
		cmocka_unit_test(test_addresses_outlive_a_silent_connection),
	};

	return cmocka_run_group_tests(tests, load_curl, NULL);
}
