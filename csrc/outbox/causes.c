#include "outbox/causes.h"

#include <inttypes.h>

uint64_t causes_sum(const uint64_t dropped[EVREC_CAUSES], unsigned *causes)
{
	unsigned with_some = 0;
	uint64_t sum = 0;

	for (int i = 0; i < EVREC_CAUSES; i++) {
		sum += dropped[i];
		with_some += dropped[i] != 0;
	}
	if (causes != NULL) {
		*causes = with_some;
	}
	return sum;
}

void causes_put(struct line *line, const uint64_t dropped[EVREC_CAUSES], bool numbers)
{
	const char *before = "";

	for (int i = 0; i < EVREC_CAUSES; i++) {
		if (dropped[i] == 0) {
			continue;
		}
		line_printf(line, "%s", before);
		if (numbers) {
			line_printf(line, "%" PRIu64 " ", dropped[i]);
		}
		line_printf(line, "%s", evrec_cause_name((enum evrec_cause)i));
		before = ", ";
	}
}
