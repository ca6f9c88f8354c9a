/* Phases: a debug build traps exactly on the steps that the table does not allow. */
#ifndef EVREC_DEBUG
#define EVREC_DEBUG
#endif
#include "base/phase.h"
#include "unit.h"

#include <signal.h>
#include <unistd.h>

enum door { OPEN, CLOSED, BRICKED_UP };

static const unsigned legal_steps[] = {
	[OPEN] = PHASE_BIT(CLOSED),
	[CLOSED] = PHASE_BIT(OPEN) | PHASE_BIT(BRICKED_UP),
	[BRICKED_UP] = 0,
};

/* Whether the step ends a child by a signal; if not, the phase must have changed. */
static bool traps(unsigned from, unsigned to)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		unsigned phase = from;

		(void)signal(SIGILL, SIG_DFL);
		(void)signal(SIGTRAP, SIG_DFL);
		phase_step(&phase, to, legal_steps);
		_exit(phase == to ? 0 : 1);
	}
	status = unit_wait(child);
	assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return WIFSIGNALED(status);
}

static void test_illegal_steps_trap(void **state)
{
	static const bool legal[3][3] = {
		[OPEN] = { [CLOSED] = true }, [CLOSED] = { [OPEN] = true, [BRICKED_UP] = true }
	};

	(void)state;
	for (unsigned from = OPEN; from <= BRICKED_UP; from++) {
		for (unsigned to = OPEN; to <= BRICKED_UP; to++) {
			assert_int_equal(phase_may_step(from, to, legal_steps), legal[from][to]);
			assert_int_equal(traps(from, to), !legal[from][to]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_illegal_steps_trap) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
