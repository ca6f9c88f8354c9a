#include "alloc_failure.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <unistd.h>

static struct {
	size_t fail_at; /* number of the allocation that fails; 0: none */
	bool onwards;   /* all after it fail too */
	atomic_bool armed;
	atomic_size_t calls, failures;
	atomic_size_t blocks;   /* not freed yet */
	size_t failures_before; /* the call that the next check is about */
} state;

bool alloc_failure_is_due(void)
{
	size_t n;

	if (!atomic_load(&state.armed)) {
		return false;
	}
	n = atomic_fetch_add(&state.calls, 1) + 1;
	if (state.fail_at == 0 || (state.onwards ? n < state.fail_at : n != state.fail_at)) {
		return false;
	}
	atomic_fetch_add(&state.failures, 1);
	return true;
}

void alloc_failure_free(void *block)
{
	if (block != NULL) {
		atomic_fetch_sub(&state.blocks, 1);
		free(block);
	}
}

void *alloc_failure_take(void *block, size_t size)
{
	void *taken = realloc(block, size == 0 ? 1 : size);

	if (taken == NULL) {
		abort(); /* the machine itself has no memory */
	}
	atomic_fetch_add(&state.blocks, block == NULL);
	return taken;
}

static void *failing_realloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		alloc_failure_free(block);
		return NULL;
	}
	return alloc_failure_is_due() ? NULL : alloc_failure_take(block, size);
}

static void *failing_malloc(size_t size)
{
	return failing_realloc(NULL, NULL, size == 0 ? 1 : size);
}

void alloc_failure_hook_jansson(void)
{
	json_set_alloc_funcs(failing_malloc, alloc_failure_free);
}

void alloc_failure_arm(void)
{
	atomic_store(&state.armed, true);
}

void alloc_failure_disarm(void)
{
	atomic_store(&state.armed, false);
}

void alloc_failure_check(bool succeeded)
{
	size_t failures = atomic_load(&state.failures);

	assert_true(succeeded || failures > state.failures_before);
	state.failures_before = failures;
}

void alloc_failure_check_error(bool succeeded, evrec_error *err)
{
	alloc_failure_check(succeeded);
	if (!succeeded) {
		assert_int_equal(err->code, EVREC_ENOMEM);
		assert_true(strlen(err->message) > 0);
	}
	*err = (evrec_error){ 0 };
}

void alloc_failure_ignore(void)
{
	state.failures_before = atomic_load(&state.failures);
}

/* A struct that is freed before its descriptors are set closes this one, if they are 0. */
static bool has_standard_input(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0;
}

static void run_one(void (*scenario)(void), size_t fail_at, bool onwards)
{
	size_t blocks = atomic_load(&state.blocks);

	state.fail_at = fail_at;
	state.onwards = onwards;
	state.calls = state.failures = state.failures_before = 0;
	scenario();
	alloc_failure_disarm();
	if (atomic_load(&state.blocks) != blocks) {
		fail_msg("allocation %zu%s fails: %zu blocks are leaked", fail_at, onwards ? " and all later" : "",
		         atomic_load(&state.blocks) - blocks);
	}
	if (!has_standard_input()) {
		fail_msg("allocation %zu%s fails: descriptor 0 is closed", fail_at, onwards ? " and all later" : "");
	}
}

void alloc_failure_run(void (*scenario)(void), size_t least)
{
	size_t n;
	int onwards;

	if (!has_standard_input()) {
		assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	}
	evrec_set_allocator(failing_realloc, NULL);
	run_one(scenario, 0, false);
	assert_true(state.calls >= least);
	for (onwards = 0; onwards <= 1; onwards++) {
		n = 0;
		do {
			run_one(scenario, ++n, onwards == 1);
		} while (state.failures != 0);
		assert_true(n > least / 2);
	}
	evrec_set_allocator(NULL, NULL);
}
