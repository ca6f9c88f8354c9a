/* Lines that sum up losses and errors: the first of a kind at once, then one in 10 s. */
#include "unit.h"

#include "recorder/trouble.h"

#define S EVREC_SECOND

static struct troubles t;
static struct line line;

static int begin(void **state)
{
	(void)state;
	t = (struct troubles){ 0 };
	return 0;
}

/* The next line that is due at `now`; "" if none is. */
static const char *next(int64_t now)
{
	return troubles_next_line(&t, now, false, &line) ? line.text : "";
}

static const char *next_of_all(int64_t now)
{
	return troubles_next_line(&t, now, true, &line) ? line.text : "";
}

static void test_the_first_is_told_at_once_and_later_ones_are_summed_up(void **state)
{
	(void)state;
	assert_string_equal(next(0), "");
	troubles_add_lost(&t, "queue_full", 1, "Normal R about Pod shop/a: m");
	assert_string_equal(next(5 * S),
	                    "evrec: 1 event was not written: queue_full; e.g. Normal R about Pod shop/a: m");
	assert_string_equal(next(5 * S), "");
	for (int i = 0; i < 180; i++) {
		troubles_add_lost(&t, "queue_full", 1, i == 0 ? "Normal R about Pod shop/b: m" : "another");
		assert_string_equal(next(15 * S - 1), "");
	}
	assert_string_equal(
		next(15 * S),
		"evrec: 180 events were not written in 10 s: queue_full; e.g. Normal R about Pod shop/b: m");
	assert_string_equal(next(100 * S), "");
	/* A kind that has been silent is told at once again. */
	troubles_add_lost(&t, "queue_full", 7, "Normal R about Pod shop/c: m");
	assert_string_equal(next(100 * S),
	                    "evrec: 7 events were not written in 85 s: queue_full; e.g. Normal R about Pod shop/c: m");
	assert_int_equal(t.waiting, 0);
}

static void test_each_kind_has_its_own_line(void **state)
{
	(void)state;
	troubles_add_lost(&t, "queue_full", 1, "a");
	troubles_add_error(&t, "transport", "no route", "kubernetes");
	troubles_add_error(&t, "callback", "on_drop: x.lua:3: boom", NULL);
	assert_string_equal(next(0),
	                    "evrec: 1 event was not written: queue_full; e.g. a; the last error was transport: "
	                    "no route");
	assert_string_equal(next(0), "evrec: the sink kubernetes: transport: no route (is retried)");
	assert_string_equal(next(0), "evrec: callback: on_drop: x.lua:3: boom");
	assert_string_equal(next(0), "");
	troubles_add_error(&t, "transport", "no route", "kubernetes");
	troubles_add_error(&t, "transport", "timed out", "kubernetes");
	assert_string_equal(next(9 * S), "");
	assert_string_equal(next(11 * S),
	                    "evrec: the sink kubernetes: transport: timed out (is retried); the last of 2 "
	                    "errors in 11 s");
	/* An error of long ago is no reason. */
	troubles_add_lost(&t, "queue_full", 1, "b");
	assert_string_equal(next(612 * S), "evrec: 1 event was not written in 612 s: queue_full; e.g. b");
}

/* The server's message says why events were dropped, also of those that are dropped after it. */
static void test_an_error_that_cost_events_is_a_part_of_their_line(void **state)
{
	(void)state;
	troubles_add_lost(&t, "forbidden", 2, "a");
	troubles_add_error(&t, "forbidden", "POST: 403", "kubernetes");
	assert_string_equal(next(0), "evrec: 2 events were not written: forbidden: POST: 403; e.g. a");
	assert_string_equal(next(0), "");
	troubles_add_lost(&t, "forbidden", 1, "b");
	assert_string_equal(next(10 * S), "evrec: 1 event was not written in 10 s: forbidden: POST: 403; e.g. b");
}

static void test_a_refused_call_has_its_place(void **state)
{
	(void)state;
	assert_false(troubles_want_place(&t));
	assert_true(troubles_want_example(&t, "invalid"));
	troubles_add_lost(&t, "invalid", 1, "type: must be Normal or Warning");
	assert_true(troubles_want_place(&t));
	troubles_set_place(&t, "hook.lua:12");
	assert_false(troubles_want_place(&t) || troubles_want_example(&t, "invalid"));
	assert_string_equal(next(0), "evrec: 1 recording call was refused: invalid: type: must be Normal or Warning "
	                             "(hook.lua:12)");
	troubles_add_lost(&t, "invalid", 1, "message: expected a string, got nil");
	troubles_set_place(&t, "hook.lua:13");
	troubles_add_lost(&t, "invalid", 1, NULL);
	assert_string_equal(next(10 * S),
	                    "evrec: 2 recording calls were refused in 10 s: invalid; e.g. message: expected "
	                    "a string, got nil (hook.lua:13)");
}

static void test_the_end_waits_for_no_period(void **state)
{
	(void)state;
	troubles_add_lost(&t, "closed", 1, "a");
	(void)next(0);
	troubles_add_error(&t, "unauthorized", "POST: 401", "kubernetes");
	(void)next(0);
	troubles_add_lost(&t, "closed", 2, "b");
	assert_string_equal(next(3 * S), "");
	assert_string_equal(next_of_all(3 * S),
	                    "evrec: 2 events were not written in 3 s: closed; e.g. b; the last error "
	                    "was unauthorized: POST: 401");
	assert_string_equal(next_of_all(3 * S), "");
}

static void test_what_could_not_be_told_is_told_as_a_number(void **state)
{
	(void)state;
	troubles_add_lost(&t, "expired", 30, "a");
	(void)next(0);
	troubles_not_told(&t);
	assert_string_equal(next(S), "");
	troubles_add_error(&t, "server", "POST: 500", "kubernetes");
	(void)next(S);
	troubles_not_told(&t);
	assert_int_equal(t.untold, 31);
	troubles_add_lost(&t, "expired", 1, "b");
	assert_string_equal(next(10 * S),
	                    "evrec: (refused calls, lost events and errors that could not be printed earlier: "
	                    "31) 1 event was not written in 10 s: expired; e.g. b; the last error was "
	                    "server: POST: 500");
	troubles_not_told(&t);
	/* Also if nothing else happens. */
	assert_string_equal(next(19 * S), "");
	assert_string_equal(next(20 * S),
	                    "evrec: refused calls, lost events and errors that could not be printed earlier: 32");
	assert_string_equal(next(1000 * S), "");
}

static void test_a_clock_that_is_set_back_only_delays(void **state)
{
	(void)state;
	troubles_add_lost(&t, "expired", 1, "a");
	(void)next(100 * S);
	troubles_add_lost(&t, "expired", 1, "b");
	assert_string_equal(next(0), "");
	assert_string_equal(next(110 * S), "evrec: 1 event was not written in 10 s: expired; e.g. b");
}

static void test_further_kinds_share_a_line(void **state)
{
	static char names[2 * TROUBLE_KINDS][8];
	unsigned lines = 0;

	(void)state;
	for (size_t i = 0; i < 2 * TROUBLE_KINDS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "k%u", (unsigned)i);
		troubles_add_error(&t, names[i], "m", NULL);
	}
	while (*next(0) != '\0') {
		lines++;
	}
	assert_int_equal(lines, TROUBLE_KINDS);
	assert_string_equal(line.text, "evrec: other: m; the last of 25 errors");
	assert_int_equal(t.waiting, 0);
}

static void test_long_texts_are_cut(void **state)
{
	char text[1000], shown[TROUBLE_TEXT];
	evrec_fields event;

	(void)state;
	memset(text, '\x01', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	evrec_fields_init(&event);
	event.type = EVREC_STR("Warning");
	event.reason = EVREC_STR("BackOff");
	event.regarding = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("n1") };
	event.note = str_from(text);
	trouble_show_event(&event, shown);
	assert_int_equal(strncmp(shown, "Warning BackOff about Node n1: \x01", 32), 0);
	assert_int_equal(strlen(shown), TROUBLE_TEXT - 1);
	troubles_add_error(&t, "rejected", text, "kubernetes");
	troubles_add_lost(&t, "rejected", 1, shown);
	assert_true(strlen(next(0)) < EVREC_LINE_SIZE);
	assert_non_null(strstr(line.text, "rejected: \\x01\\x01"));
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_first_is_told_at_once_and_later_ones_are_summed_up),
		TEST(test_each_kind_has_its_own_line),
		TEST(test_an_error_that_cost_events_is_a_part_of_their_line),
		TEST(test_a_refused_call_has_its_place),
		TEST(test_the_end_waits_for_no_period),
		TEST(test_what_could_not_be_told_is_told_as_a_number),
		TEST(test_a_clock_that_is_set_back_only_delays),
		TEST(test_further_kinds_share_a_line),
		TEST(test_long_texts_are_cut),
	};

	return cmocka_run_group_tests_name("trouble", tests, NULL, NULL);
}
