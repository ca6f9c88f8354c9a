/* Libraries that are loaded when they are needed: libm and zlib, one that is missing, and one that lacks a function. */
#include "unit.h"

#include "base/library.h"

#include <pthread.h>

#define MISSING "libevrec-missing.so.0"
#define LIBM "libm.so.6"
#define ZLIB "libz.so.1"

static double (*cosine)(double);
static double (*no_function)(double);

static const struct library_function cosine_alone[] = { { "cos", (void **)(void *)&cosine, false } };
static const struct library_function one_is_missing[] = {
	{ "cos", (void **)(void *)&cosine, false },
	{ "evrec_no_function", (void **)(void *)&no_function, false },
};

static struct library library_of(const char *const *files)
{
	cosine = NULL;
	return (struct library){ "A Library", files, cosine_alone, 1, false };
}

static void check_fails(struct library *library, const char *reason)
{
	evrec_error err = { 0 };

	assert_false(library_load(library, &err));
	assert_int_equal(err.code, EVREC_ESYSTEM);
	unit_check_contains(err.message, "A Library cannot be loaded: ");
	unit_check_contains(err.message, reason);
	assert_false(library_load(library, NULL));
	assert_false(library->is_loaded);
}

static void check_loads(struct library *library)
{
	evrec_error err = { 0 };

	assert_true(library_load(library, &err));
	assert_int_equal(err.code, 0);
	assert_true(library->is_loaded);
	assert_non_null(cosine);
	assert_true(cosine(0) == 1);
}

static void test_missing_library_is_an_error_with_the_reason(void **state)
{
	const char *const files[] = { MISSING, NULL };
	struct library library = library_of(files);

	(void)state;
	check_fails(&library, MISSING);
	assert_null(cosine);
}

static void test_missing_function_is_an_error_with_its_name(void **state)
{
	const char *const files[] = { LIBM, NULL };
	struct library library = library_of(files);

	(void)state;
	library.functions = one_is_missing;
	library.n = 2;
	check_fails(&library, "evrec_no_function");
	assert_null(no_function);
}

static void test_optional_function_may_be_missing(void **state)
{
	static const struct library_function functions[] = {
		{ "cos", (void **)(void *)&cosine, false },
		{ "evrec_no_function", (void **)(void *)&no_function, true },
	};
	const char *const files[] = { LIBM, NULL };
	struct library library = { "A Library", files, functions, 2, false };

	(void)state;
	check_loads(&library);
	assert_null(no_function);
}

/* As a package may be installed meanwhile. */
static void test_a_failed_load_is_tried_again(void **state)
{
	const char *files[] = { MISSING, NULL };
	struct library library = library_of(files);

	(void)state;
	check_fails(&library, MISSING);
	files[0] = LIBM;
	check_loads(&library);
}

static void test_a_loaded_library_is_not_loaded_again(void **state)
{
	const char *files[] = { LIBM, NULL };
	struct library library = library_of(files);

	(void)state;
	check_loads(&library);
	files[0] = MISSING;
	cosine = NULL;
	assert_true(library_load(&library, NULL));
	assert_null(cosine);
}

/* zlib, which exists, has no cosine; libm behind it is not asked. */
static void test_the_first_library_that_exists_counts(void **state)
{
	const char *const libm_first[] = { MISSING, LIBM, ZLIB, NULL }, *const zlib_first[] = { ZLIB, LIBM, NULL };
	struct library library = library_of(libm_first);

	(void)state;
	check_loads(&library);
	library = library_of(zlib_first);
	check_fails(&library, "cos");
}

/* ---- threads ---- */

#define ROUNDS 200

struct pair {
	pthread_barrier_t barrier;
	struct library good[ROUNDS], bad[ROUNDS];
};

/* Each library is loaded by both threads at once. */
static void *load_all(void *arg)
{
	struct pair *pair = arg;
	uintptr_t wrong = 0;

	for (size_t i = 0; i < ROUNDS; i++) {
		evrec_error err = { 0 };

		(void)pthread_barrier_wait(&pair->barrier);
		wrong += !library_load(&pair->good[i], &err) || cosine == NULL || cosine(0) != 1;
		wrong += library_load(&pair->bad[i], &err) || strstr(err.message, MISSING) == NULL;
	}
	return (void *)wrong; /* NOLINT(performance-no-int-to-ptr) */
}

static void test_two_threads_load_a_library(void **state)
{
	static const char *const files[] = { LIBM, NULL }, *const missing[] = { MISSING, NULL };
	static struct pair pair;
	pthread_t other;
	void *wrong;

	(void)state;
	for (size_t i = 0; i < ROUNDS; i++) {
		pair.good[i] = library_of(files);
		pair.bad[i] = library_of(missing);
	}
	assert_int_equal(pthread_barrier_init(&pair.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&other, NULL, load_all, &pair), 0);
	assert_null(load_all(&pair));
	assert_int_equal(pthread_join(other, &wrong), 0);
	assert_null(wrong);
	(void)pthread_barrier_destroy(&pair.barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_library_is_an_error_with_the_reason),
		cmocka_unit_test(test_missing_function_is_an_error_with_its_name),
		cmocka_unit_test(test_optional_function_may_be_missing),
		cmocka_unit_test(test_a_failed_load_is_tried_again),
		cmocka_unit_test(test_a_loaded_library_is_not_loaded_again),
		cmocka_unit_test(test_the_first_library_that_exists_counts),
		cmocka_unit_test(test_two_threads_load_a_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
