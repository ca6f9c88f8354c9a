/* Maps of many pairs: of equal keys the last one is visited, and a function of the visitor may leave by longjmp. */
#include "counting_allocator.h"

#include <setjmp.h>

#define PAIRS 100000
#define KEYS 60000 /* so most keys are there twice, at pairs that are far apart */

static struct counting_allocator allocator;

struct visited {
	jmp_buf left;
	size_t pairs, leave_at; /* leave_at: 0: never */
	size_t live;            /* bytes in use before the visit */
	bool held;              /* more were in use in a function of the visitor */
	unsigned char seen[PAIRS];
};

static bool see(struct visited *v)
{
	v->held = v->held || allocator.live != v->live;
	return true;
}

static bool begin(void *ctx, const char *key)
{
	(void)key;
	return see(ctx);
}

static bool end(void *ctx)
{
	return see(ctx);
}

static bool string(void *ctx, evrec_str key, evrec_str value)
{
	struct visited *v = ctx;

	if (value.data[0] != '#') {
		return see(v); /* of another field */
	}
	(void)key;
	v->pairs++;
	if (v->pairs == v->leave_at) {
		longjmp(v->left, 1);
	}
	v->seen[strtoul(value.data + 1, NULL, 10)]++;
	return see(v);
}

static bool integer(void *ctx, const char *key, int64_t value)
{
	(void)key;
	(void)value;
	return see(ctx);
}

static bool boolean(void *ctx, const char *key, bool value)
{
	(void)key;
	(void)value;
	return see(ctx);
}

static const evrec_visitor visitor = { begin, begin, end, string, integer, boolean, begin };

static evrec_pair pairs[PAIRS];
static char texts[PAIRS][2][16];

static void make_pairs(void)
{
	for (size_t i = 0; i < PAIRS; i++) {
		(void)snprintf(texts[i][0], sizeof(texts[i][0]), "%zu", i % KEYS);
		(void)snprintf(texts[i][1], sizeof(texts[i][1]), "#%zu", i);
		pairs[i] = (evrec_pair){ str_from(texts[i][0]), str_from(texts[i][1]) };
	}
}

static bool visit(struct visited *v, size_t len)
{
	evrec_fields fields;

	evrec_fields_init(&fields);
	fields.labels = (evrec_map){ pairs, len };
	v->live = allocator.live;
	return evrec_fields_visit(&fields, EVREC_CORE_V1, NULL, &visitor, v);
}

static void test_the_last_pair_of_a_key_is_visited(void **state)
{
	static struct visited v;

	(void)state;
	assert_true(visit(&v, PAIRS));
	assert_int_equal(v.pairs, KEYS);
	for (size_t i = 0; i < PAIRS; i++) {
		assert_int_equal(v.seen[i], i + KEYS >= PAIRS);
	}
}

static void test_no_memory_is_held_while_a_function_of_the_visitor_runs(void **state)
{
	static struct visited v;

	(void)state;
	assert_true(visit(&v, PAIRS));
	assert_false(v.held);
}

static void check_leaving(size_t len)
{
	static struct visited v;

	memset(&v, 0, sizeof(v));
	v.leave_at = 10;
	if (setjmp(v.left) == 0) {
		(void)visit(&v, len);
		fail();
	}
	assert_int_equal(allocator.live, v.live);
}

static void test_a_function_of_the_visitor_may_leave(void **state)
{
	(void)state;
	check_leaving(16);
	check_leaving(17);
	check_leaving(PAIRS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_pair_of_a_key_is_visited),
		cmocka_unit_test(test_no_memory_is_held_while_a_function_of_the_visitor_runs),
		cmocka_unit_test(test_a_function_of_the_visitor_may_leave),
	};

	evrec_set_allocator(counting_realloc, &allocator);
	make_pairs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
