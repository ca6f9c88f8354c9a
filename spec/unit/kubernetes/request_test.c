/* Method, content type and path of requests; no name leads to another path. */
#include "unit.h"

#include "kubernetes/request.h"

static void check_path(int code, struct event_request *request, const char *method, const char *type, const char *path)
{
	assert_int_equal(code, 0);
	assert_string_equal(request->method, method);
	assert_string_equal(request->content_type, type);
	assert_string_equal(request->path, path);
	mem_free(request->path);
}

static void test_create_is_a_post(void **state)
{
	struct event_request request;

	(void)state;
	check_path(event_request_create(&request, EVREC_CORE_V1, "shop", NULL), &request, "POST", "application/json",
	           "/api/v1/namespaces/shop/events");
	check_path(event_request_create(&request, EVREC_EVENTS_V1, "shop", NULL), &request, "POST", "application/json",
	           "/apis/events.k8s.io/v1/namespaces/shop/events");
}

static void test_patch_is_a_strategic_merge_patch(void **state)
{
	struct event_request request;

	(void)state;
	check_path(event_request_patch(&request, EVREC_CORE_V1, "shop", "web-0.17", NULL), &request, "PATCH",
	           "application/strategic-merge-patch+json", "/api/v1/namespaces/shop/events/web-0.17");
	check_path(event_request_patch(&request, EVREC_EVENTS_V1, "shop", "web-0.17", NULL), &request, "PATCH",
	           "application/strategic-merge-patch+json", "/apis/events.k8s.io/v1/namespaces/shop/events/web-0.17");
}

static void test_segments_are_escaped(void **state)
{
	static const struct {
		const char *ns, *name, *path;
	} cases[] = {
		{ "a b", "fe80::1", "/api/v1/namespaces/a%20b/events/fe80%3A%3A1" },
		{ "ns", "x?y#z&u=v;w", "/api/v1/namespaces/ns/events/x%3Fy%23z%26u%3Dv%3Bw" },
		{ "ns", "\xc3\xa4\n\\", "/api/v1/namespaces/ns/events/%C3%A4%0A%5C" },
		{ "ns", "...", "/api/v1/namespaces/ns/events/..." },
		{ "ns", "aZ09-._~", "/api/v1/namespaces/ns/events/aZ09-._~" },
	};
	struct event_request request;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_path(event_request_patch(&request, EVREC_CORE_V1, cases[i].ns, cases[i].name, NULL), &request,
		           "PATCH", "application/strategic-merge-patch+json", cases[i].path);
	}
}

static void test_names_that_change_the_path_are_refused(void **state)
{
	static const char *const names[] = { "", ".", "..", "a/b", "../../secrets/x", "%2e%2e", "a%2fb" };
	struct event_request request;
	evrec_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(event_request_create(&request, EVREC_EVENTS_V1, names[i], &err), EVREC_EINVALID);
		assert_int_equal(event_request_patch(&request, EVREC_CORE_V1, names[i], "x", &err), EVREC_EINVALID);
		assert_int_equal(event_request_patch(&request, EVREC_EVENTS_V1, "shop", names[i], &err),
		                 EVREC_EINVALID);
		assert_non_null(strstr(err.message, "'/' or '%'"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_is_a_post),
		cmocka_unit_test(test_patch_is_a_strategic_merge_patch),
		cmocka_unit_test(test_segments_are_escaped),
		cmocka_unit_test(test_names_that_change_the_path_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
