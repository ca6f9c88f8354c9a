#include "unit.h"

#include "base/clock.h"

uint64_t unit_seed(void)
{
	const char *text = getenv("EVREC_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)evrec_clock_now(evrec_clock_real());

	print_message("EVREC_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

uint64_t unit_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

int64_t unit_mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

int unit_wait(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

void unit_check_contains(const char *text, const char *part)
{
	if (strstr(text, part) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", part, text);
	}
}

void *unit_realloc(void *ctx, void *block, size_t size)
{
	struct unit_allocator *allocator = ctx;

	if (size == 0) {
		free(block);
		return NULL;
	}
	return ++allocator->calls == allocator->fail_at ? NULL : realloc(block, size);
}
