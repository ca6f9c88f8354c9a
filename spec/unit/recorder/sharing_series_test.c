/* Series of a shared recorder whose owner ends in order: the next owner goes on with them. */
#include "sharing_fixture.h"

#include "base/file.h"

static void check_in_file(const char *path, const char *words, unsigned creates)
{
	struct buf text = { 0 };
	unsigned lines = 0;

	assert_true(file_read(path, 1 << 20, &text));
	unit_check_contains(buf_cstr(&text), words);
	for (const char *at = text.data; (at = strstr(at, "\"name\":\"p.")) != NULL; at++) {
		lines += strncmp(at, strstr(text.data, "\"name\":\"p."), 28) != 0;
	}
	/* All lines are of one event. */
	assert_int_equal(lines + 1, creates);
	buf_free(&text);
}

static void open_both(struct sharing_fixture *f, const char *path, const char *state_file)
{
	evrec_sink_options common;

	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	common.state_file = str_from(state_file);
	sharing_fixture_init(f);
	for (size_t i = 0; i < 2; i++) {
		const evrec_broadcaster_options options = sharing_fixture_options(f, i, &f->sides[i]);

		assert_true(side_open_limited(&f->sides[i], &options, path, &common));
		evrec_broadcaster_poll(f->sides[i].b);
	}
	sharing_fixture_poll(f, 4);
}

static void check_goes_on(const char *path, const char *state_file)
{
	struct sharing_fixture f;

	open_both(&f, path, state_file);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(side_record(&f.sides[i % 2], "a"), 0);
		sharing_fixture_poll(&f, 6);
	}
	assert_int_equal(side_stats(&f.sides[0]).created, 1);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, SOON, NULL), 0);
	check_in_file(path, "\"count\":6", 1);
	for (unsigned i = 0; i < 6; i++) {
		evrec_broadcaster_poll(f.sides[1].b);
	}
	assert_int_equal(side_stats(&f.sides[1]).series.ongoing, 1);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(side_stats(&f.sides[1]).created, 0);
	assert_int_equal(side_stats(&f.sides[1]).patched, 1);
	check_in_file(path, "\"count\":7", 1);
	assert_int_equal(f.sides[0].drops + f.sides[1].drops, 0);
	assert_int_equal(f.sides[0].errors + f.sides[1].errors, 0);
	sharing_fixture_close(&f);
}

static void test_handed_over(void **state)
{
	check_goes_on(tmpdir_path(*state, "events"), "");
}

static void test_in_a_state_file(void **state)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s", tmpdir_path(*state, "state"));
	check_goes_on(tmpdir_path(*state, "events"), path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_handed_over),
		TMPDIR_TEST(test_in_a_state_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
