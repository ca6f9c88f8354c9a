/* fit_event: the API server's limits for events.k8s.io/v1, each at its edge. */
#include "alloc_failure.h"

#include "event/event.h"
#include "event/fit.h"

#define HOST EVREC_STR("node-1")

static char text[4096]; /* of letters */

static evrec_str letters(size_t len)
{
	memset(text, 'x', sizeof(text));
	return (evrec_str){ text, len };
}

static evrec_fields sample(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = f.regarding.ns = EVREC_STR("shop");
	f.regarding.kind = EVREC_STR("Pod");
	f.regarding.name = EVREC_STR("web-0");
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("Started");
	f.note = EVREC_STR("note");
	f.controller = EVREC_STR("my-operator");
	return f;
}

static void check_fits(struct fit *fit, evrec_fields *f)
{
	evrec_error err;

	assert_int_equal(fit_event(fit, f, HOST, &err), 0);
}

static void check_unfit(const evrec_fields *fields, const char *what)
{
	struct fit fit = { 0 };
	evrec_fields f = *fields;
	evrec_error err;

	assert_int_equal(fit_event(&fit, &f, HOST, &err), EVREC_EINVALID);
	assert_memory_equal(err.message, what, strlen(what));
	fit_free(&fit);
}

static void test_a_fit_event_is_unchanged_but_for_unset_fields(void **state)
{
	struct fit fit = { 0 };
	evrec_fields f = sample();

	(void)state;
	check_fits(&fit, &f);
	assert_ptr_equal(f.note.data, sample().note.data);
	assert_str(f.action, "Started");
	assert_str(f.instance, "my-operator-node-1");
	f.action = EVREC_STR("Start");
	f.instance = EVREC_STR("i");
	check_fits(&fit, &f);
	assert_str(f.reason, "Started");
	assert_str(f.action, "Start");
	assert_str(f.instance, "i");
	fit_free(&fit);
}

/* The longest texts, and those that are one byte too long, in letters and in characters of four bytes. */
static void check_cut(evrec_str *field, evrec_fields *f, size_t max)
{
	struct fit fit = { 0 };
	size_t i, mark = sizeof(CUT_MARK) - 1;

	*field = letters(max);
	check_fits(&fit, f);
	assert_true(field->len == max && field->data == text);
	*field = letters(max + 1);
	check_fits(&fit, f);
	assert_int_equal(field->len, max);
	assert_memory_equal(field->data + max - mark, CUT_MARK, mark);
	assert_int_equal(field->data[max - mark - 1], 'x');
	for (i = 0; i < sizeof(text); i += 4) {
		memcpy(text + i, "\xF0\x9F\x90\xB3", 4);
	}
	*field = (evrec_str){ text, max + 4 };
	check_fits(&fit, f);
	assert_true(utf8_valid(*field) && field->len <= max && field->len > max - 4 - mark);
	assert_memory_equal(field->data + field->len - mark, CUT_MARK, mark);
	*field = EVREC_STR("ok");
	fit_free(&fit);
}

static void test_long_texts_are_cut(void **state)
{
	evrec_fields f = sample();

	(void)state;
	check_cut(&f.note, &f, 1024);
	check_cut(&f.reason, &f, 128);
	f.action = EVREC_STR("A");
	check_cut(&f.action, &f, 128);
}

static void test_an_unset_action_is_the_cut_reason(void **state)
{
	struct fit fit = { 0 };
	evrec_fields f = sample();

	(void)state;
	f.reason = letters(129);
	check_fits(&fit, &f);
	assert_int_equal(f.action.len, 128);
	assert_true(str_eq(f.action, f.reason));
	fit_free(&fit);
}

static void test_invalid_bytes_are_replaced_before_the_cut(void **state)
{
	struct fit fit = { 0 };
	evrec_fields f = sample();

	(void)state;
	f.note = letters(1024);
	text[0] = '\xFF';
	check_fits(&fit, &f);
	assert_int_equal(f.note.len, 1024);
	assert_memory_equal(f.note.data, "\xEF\xBF\xBD", 3);
	fit_free(&fit);
}

static void test_long_instances_stay_different(void **state)
{
	struct fit one = { 0 }, two = { 0 };
	evrec_fields f = sample(), g = sample();
	char other[129];
	size_t i;

	(void)state;
	f.instance = letters(128);
	check_fits(&one, &f);
	assert_true(f.instance.data == text && f.instance.len == 128);
	f.instance = letters(129);
	memcpy(other, text, 129);
	other[128] = 'y';
	g.instance = (evrec_str){ other, 129 };
	check_fits(&one, &f);
	check_fits(&two, &g);
	assert_true(f.instance.len == 128 && g.instance.len == 128);
	assert_memory_equal(f.instance.data, text, 119);
	assert_int_equal(f.instance.data[119], '-');
	for (i = 120; i < 128; i++) {
		assert_non_null(strchr("0123456789abcdef", f.instance.data[i]));
	}
	assert_false(str_eq(f.instance, g.instance));
	/* The same instance is shortened to the same. */
	g.instance = letters(129);
	check_fits(&two, &g);
	assert_true(str_eq(f.instance, g.instance));
	/* The cut is between two characters. */
	f.instance = letters(200);
	memcpy(text + 117, "\xF0\x9F\x90\xB3", 4);
	check_fits(&one, &f);
	assert_true(utf8_valid(f.instance) && f.instance.len == 117 + 9);
	fit_free(&one);
	fit_free(&two);
}

/* An instance that is made of a controller and a host name may be too long as well. */
static void test_a_made_instance_is_shortened(void **state)
{
	struct fit fit = { 0 };
	evrec_fields f = sample();
	evrec_error err;

	(void)state;
	assert_int_equal(fit_event(&fit, &f, letters(116), &err), 0); /* "my-operator-" has 12 bytes */
	assert_int_equal(f.instance.len, 128);
	assert_int_equal(f.instance.data[127], 'x');
	f.instance = EVREC_STR("");
	assert_int_equal(fit_event(&fit, &f, letters(117), &err), 0);
	assert_int_equal(f.instance.len, 128);
	assert_memory_equal(f.instance.data, "my-operator-xxx", 15);
	assert_int_equal(f.instance.data[119], '-');
	fit_free(&fit);
}

static void test_controllers_are_qualified_names(void **state)
{
	static const char *const good[] = { "a", "A", "0", "my-operator", "a.b_c-D", "example.com/a", "a-b.c/A_b" };
	static const char *const bad[] = { "",   "-a", "a-",      "_a",    "a.",   "a b",  "a\xC3\xA9", "/a",
		                           "a/", "/",  "A.com/a", "a/b/c", "-a/b", "a./b", "a..b/c",    "a\nb" };
	evrec_fields f = sample();
	struct fit fit = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		f.controller = str_from(good[i]);
		check_fits(&fit, &f);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f.controller = str_from(bad[i]);
		check_unfit(&f, "reportingController: ");
	}
	f.controller = letters(63);
	check_fits(&fit, &f);
	f.controller = letters(64);
	check_unfit(&f, "reportingController: ");
	f.controller = letters(253 + 64);
	text[253] = '/';
	check_fits(&fit, &f);
	f.controller = letters(254 + 2);
	text[254] = '/';
	check_unfit(&f, "reportingController: ");
	f.controller = letters(253 + 65);
	text[253] = '/';
	check_unfit(&f, "reportingController: ");
	fit_free(&fit);
}

static void test_type_and_related(void **state)
{
	evrec_fields f = sample();
	struct fit fit = { 0 };

	(void)state;
	f.type = EVREC_STR("Error");
	check_unfit(&f, "type: ");
	f.type = EVREC_STR("Warning");
	check_fits(&fit, &f);
	f.related = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("other") };
	check_fits(&fit, &f);
	f.regarding.ns = EVREC_STR("");
	check_unfit(&f, "related: ");
	f.related.ns = EVREC_STR("");
	check_fits(&fit, &f);
	fit_free(&fit);
}

static void long_event(void)
{
	struct fit fit = { 0 };
	evrec_error err = { 0 };
	evrec_fields f = sample();
	int i, code;

	alloc_failure_arm();
	for (i = 0; i < 2; i++) {
		f.note = f.reason = f.action = letters(2000);
		f.instance = (evrec_str){ text, i == 0 ? 0 : 200 };
		code = fit_event(&fit, &f, (evrec_str){ text, 200 }, &err);
		alloc_failure_check_error(code == 0, &err);
		assert_true(code != 0 || (f.instance.len == 128 && f.note.len == 1024 && f.action.len == 128));
	}
	alloc_failure_disarm();
	f = sample(); /* which needs no memory, or little: a failure before does not count */
	f.action = EVREC_STR("A");
	check_fits(&fit, &f);
	fit_free(&fit);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(long_event, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_fit_event_is_unchanged_but_for_unset_fields),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_an_unset_action_is_the_cut_reason),
		cmocka_unit_test(test_invalid_bytes_are_replaced_before_the_cut),
		cmocka_unit_test(test_long_instances_stay_different),
		cmocka_unit_test(test_a_made_instance_is_shortened),
		cmocka_unit_test(test_controllers_are_qualified_names),
		cmocka_unit_test(test_type_and_related),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
