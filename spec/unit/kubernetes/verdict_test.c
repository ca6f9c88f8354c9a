/* The outcome of every kind of answer to a create and to a patch. */
#include "kubernetes/verdict.h"

#include "unit.h"

struct row {
	int status;
	bool unsent, terminating; /* of the answer */
	enum verb verb;
	bool was_maybe_received, renamed; /* the state */
	enum verdict verdict;
	enum evrec_cause cause;
	bool maybe_received, quiet;
};

#define POST VERB_CREATE
#define PATCH VERB_PATCH
#define DROP(why) VERDICT_DROP, EVREC_CAUSE_##why
#define NO_CAUSE 0

static const struct row table[] = {
	{ 200, 0, 0, POST, 0, 0, VERDICT_WRITTEN, NO_CAUSE, 0, 1 },
	{ 201, 0, 0, POST, 0, 0, VERDICT_WRITTEN, NO_CAUSE, 0, 1 },
	{ 201, 0, 0, POST, 1, 1, VERDICT_WRITTEN, NO_CAUSE, 0, 1 },
	{ 299, 0, 0, POST, 0, 0, VERDICT_WRITTEN, NO_CAUSE, 0, 1 },
	{ 200, 0, 0, PATCH, 0, 0, VERDICT_WRITTEN, NO_CAUSE, 0, 1 },
	{ 0, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 0, 1, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 0, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 0, 1, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 429, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 429, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 408, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 500, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 502, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 503, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 504, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 408, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 500, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 502, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 503, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 504, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 401, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 401, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 404, 0, 0, PATCH, 0, 0, VERDICT_CREATE, NO_CAUSE, 0, 1 },
	{ 404, 0, 1, PATCH, 0, 0, VERDICT_CREATE, NO_CAUSE, 0, 1 },
	{ 404, 0, 0, POST, 0, 0, DROP(NOT_FOUND), 0, 0 },
	{ 404, 0, 1, POST, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 400, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 413, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 422, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 410, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 405, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 400, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 413, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 422, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 410, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 301, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 307, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 101, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 501, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 505, 0, 0, PATCH, 0, 0, DROP(REJECTED), 0, 0 },
	{ 507, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 520, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 530, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 599, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ 999, 0, 0, POST, 0, 0, VERDICT_RETRY, NO_CAUSE, 1, 0 },
	{ -1, 0, 0, POST, 0, 0, DROP(REJECTED), 0, 0 },
	{ 403, 0, 0, POST, 0, 0, DROP(FORBIDDEN), 0, 0 },
	{ 403, 0, 0, PATCH, 0, 0, DROP(FORBIDDEN), 0, 0 },
	{ 403, 0, 1, POST, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 403, 0, 1, PATCH, 0, 0, DROP(TERMINATING), 0, 1 },
	{ 409, 0, 0, POST, 1, 0, VERDICT_EXISTS, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 1, 1, VERDICT_EXISTS, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 0, 0, VERDICT_RENAME, NO_CAUSE, 0, 1 },
	{ 409, 0, 0, POST, 0, 1, DROP(CONFLICT), 0, 0 },
	{ 409, 0, 0, PATCH, 0, 0, VERDICT_RETRY, NO_CAUSE, 0, 0 },
	{ 409, 0, 0, PATCH, 0, 1, VERDICT_RETRY, NO_CAUSE, 0, 0 },
};

static void test_verdict_of_each_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *row = &table[i];
		const struct kubernetes_try try = { row->verb, row->was_maybe_received, row->renamed, false };
		evrec_answer answer = { .status = row->status, .unsent = row->unsent, .terminating = row->terminating };
		struct outcome o;

		kubernetes_outcome(&try, &answer, &o);

		if (o.verdict != row->verdict || (o.verdict == VERDICT_DROP && o.cause != row->cause) ||
		    o.maybe_received != row->maybe_received || (o.problem == NULL) != row->quiet) {
			fail_msg("row %zu (status %d): verdict %d, cause %d, maybe_received %d, quiet %d", i,
			         row->status, o.verdict, o.cause, o.maybe_received, (o.problem == NULL));
		}
	}
}

/* The name that on_error gets: whether the write is retried follows from it. */
static void test_name_of_each_problem(void **state)
{
	const struct {
		int status;
		const char *name;
	} rows[] = {
		{ 0, "transport" },   { 400, "rejected" }, { 401, "unauthorized" }, { 403, "forbidden" },
		{ 404, "not_found" }, { 408, "server" },   { 409, "conflict" },     { 410, "rejected" },
		{ 429, "throttled" }, { 500, "server" },   { 501, "rejected" },     { 502, "server" },
		{ 503, "server" },    { 504, "server" },   { 505, "rejected" },     { 506, "server" },
		{ 520, "server" },    { 529, "server" },   { 600, "server" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct kubernetes_try try = { .verb = POST, .renamed = true };
		const evrec_answer answer = { .status = rows[i].status };
		struct outcome o;

		kubernetes_outcome(&try, &answer, &o);
		assert_string_equal(o.problem, rows[i].name);
		/* A function of a sink may leave the message empty. */
		if (answer.status == 0) {
			assert_string_equal(o.message, "POST: no answer");
		}
	}
}

/* Authorization refuses a namespace, admission one event; a namespace that is being deleted takes none. */
static void test_authorization_blocks_a_namespace(void **state)
{
	const struct {
		int status;
		const char *message;
		bool terminating, refuses;
	} rows[] = {
		{ 403, "", false, true },
		{ 403, "no", false, true },
		{ 403, "events is forbidden: User \"u\" cannot create resource \"events\" in API group \"\"", false,
		  true },
		{ 403, "events \"a.1\" is forbidden: User \"u\" cannot patch resource \"events\"", false, true },
		{ 403, "events \"a.1\" is forbidden: exceeded quota: q, requested: count/events=1", false, false },
		{ 403, "events.events.k8s.io is forbidden: User \"u\" cannot create resource \"events\"", false, true },
		{ 403, "events.events.k8s.io \"a.1\" is forbidden: User \"u\" cannot patch resource \"events\"", false,
		  true },
		{ 403, "events.events.k8s.io \"a.1\" is forbidden: exceeded quota: q, requested: count/events=1", false,
		  false },
		{ 403, "events is forbidden: User \"system:anonymous\" cannot create resource \"events\": no policy",
		  false, true },
		{ 403, "events \"a.1\" is forbidden: User \"\" cannot patch resource \"events\": no policy", false,
		  true },
		{ 403,
		  "events \"a.1\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: a note cannot have a "
		  "card",
		  false, false },
		{ 403, "events \"a.1\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>",
		  false, false },
		{ 403, "events \"a.1\" is forbidden: policy: is forbidden: User \"u\" cannot create", false, false },
		{ 403, "events \"a.1\" is forbidden: User \"u\" has too many events", false, false },
		{ 403, "admission webhook \"w.example.com\" denied the request: it cannot be", false, false },
		{ 403, "events \"a.1\" is forbidden: because it is being terminated", true, true },
		{ 404, "", true, true },
		{ 404, "", false, false },
		{ 422, "", false, false },
		{ 503, "", false, false },
		{ 201, "", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct kubernetes_try try = { POST, false, false, false };
		evrec_answer answer = { .status = rows[i].status, .terminating = rows[i].terminating };
		struct outcome o;

		snprintf(answer.message, sizeof(answer.message), "%s", rows[i].message);
		kubernetes_outcome(&try, &answer, &o);
		assert_int_equal(o.blocks_namespace, rows[i].refuses);
	}
}

/* A server that has just started answers 403 before it knows the roles: retry, unless admission or deletion is the reason. */
static void test_403_of_a_starting_server_is_retried(void **state)
{
	const struct kubernetes_try try = { POST, false, false, true };
	evrec_answer answer = { .status = 403 };
	struct outcome o;

	(void)state;
	snprintf(answer.message, sizeof(answer.message),
	         "events is forbidden: User \"u\" cannot create resource \"events\"");
	kubernetes_outcome(&try, &answer, &o);
	assert_int_equal(o.verdict, VERDICT_RETRY);
	assert_true(o.problem == NULL && !o.blocks_namespace && !o.maybe_received);
	snprintf(answer.message, sizeof(answer.message), "admission webhook \"w\" denied the request: no");
	kubernetes_outcome(&try, &answer, &o);
	assert_int_equal(o.verdict, VERDICT_DROP);
	answer.terminating = true;
	kubernetes_outcome(&try, &answer, &o);
	assert_int_equal(o.cause, EVREC_CAUSE_TERMINATING);
}

/* Only what the server says after it has looked at the write shows that the account may use the API. */
static void test_news_of_the_api(void **state)
{
	static const char forbidden[] = "events.events.k8s.io is forbidden: User \"u\" cannot create resource";
	static const char quota[] = "events.events.k8s.io \"a.1\" is forbidden: exceeded quota";
	static const char policy[] = "events.events.k8s.io \"a.1\" is forbidden: ValidatingAdmissionPolicy 'p' denied "
				     "request: a note cannot have a card";
	const struct {
		int status;
		bool lacks_api, just_started, terminating;
		const char *message;
		enum api_news news;
	} rows[] = {
		{ 0, false, false, false, "", API_NO_NEWS },
		{ 200, false, false, false, "", API_SERVED },
		{ 201, false, true, false, "", API_SERVED },
		{ 307, false, false, false, "", API_NO_NEWS },
		{ 400, false, false, false, "", API_NO_NEWS },
		{ 401, false, false, false, "", API_NO_NEWS },
		{ 403, false, false, false, forbidden, API_FORBIDDEN },
		{ 403, false, true, false, forbidden, API_NO_NEWS },
		{ 403, false, false, false, quota, API_SERVED },
		{ 403, false, true, false, quota, API_SERVED },
		{ 403, false, false, false, policy, API_SERVED },
		{ 403, false, false, true, "", API_SERVED },
		{ 404, false, false, false, "", API_SERVED },
		{ 404, true, false, false, "", API_MISSING },
		{ 409, false, false, false, "", API_SERVED },
		{ 422, false, false, false, "", API_SERVED },
		{ 429, false, false, false, "", API_NO_NEWS },
		{ 500, false, false, false, "", API_NO_NEWS },
		{ 503, false, false, false, "", API_NO_NEWS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct kubernetes_try try = { POST, false, false, rows[i].just_started };
		evrec_answer answer = { .status = rows[i].status, .terminating = rows[i].terminating };

		snprintf(answer.message, sizeof(answer.message), "%s", rows[i].message);
		if (kubernetes_api_news(&try, &answer, rows[i].lacks_api) != rows[i].news) {
			fail_msg("row %zu (status %d)", i, rows[i].status);
		}
	}
}

/* A request lost on a connection that the server closed after a 401 may have been carried out all the same. */
static void test_401_in_doubt_is_retried(void **state)
{
	const evrec_answer answer = { .status = 401, .maybe_late = true };
	const struct kubernetes_try create = { POST, false, false, false }, patch = { PATCH, false, false, false };
	struct outcome o;

	(void)state;
	kubernetes_outcome(&create, &answer, &o);
	assert_int_equal(o.verdict, VERDICT_RETRY);
	assert_true(o.maybe_received && !o.maybe_late);
	kubernetes_outcome(&patch, &answer, &o);
	assert_int_equal(o.verdict, VERDICT_RETRY);
	assert_true(!o.maybe_received && o.maybe_late);
}

/* Which results slow the sink down, and which count towards an outage. */
static void test_result_of_each_status(void **state)
{
	const struct {
		int status;
		enum request_result result;
	} rows[] = {
		{ 0, REQUEST_UNANSWERED },  { 401, REQUEST_UNANSWERED }, { 429, REQUEST_REFUSED },
		{ 503, REQUEST_REFUSED },   { 408, REQUEST_TIMED_OUT },  { 504, REQUEST_TIMED_OUT },
		{ 200, REQUEST_SUCCEEDED }, { 201, REQUEST_SUCCEEDED },  { 404, REQUEST_OTHER },
		{ 409, REQUEST_OTHER },     { 500, REQUEST_OTHER },      { 502, REQUEST_OTHER },
		{ 520, REQUEST_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const evrec_answer answer = { .status = rows[i].status };

		assert_int_equal(kubernetes_result(&answer), rows[i].result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdict_of_each_answer),
		cmocka_unit_test(test_name_of_each_problem),
		cmocka_unit_test(test_authorization_blocks_a_namespace),
		cmocka_unit_test(test_403_of_a_starting_server_is_retried),
		cmocka_unit_test(test_news_of_the_api),
		cmocka_unit_test(test_401_in_doubt_is_retried),
		cmocka_unit_test(test_result_of_each_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
