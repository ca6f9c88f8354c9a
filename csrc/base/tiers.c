#include "base/tiers.h"

static unsigned log_of_next(const struct tiers *t)
{
	return 31 - (unsigned)__builtin_clz((uint32_t)t->room + TIERS_FIRST);
}

size_t tiers_next(const struct tiers *t, size_t max)
{
	const size_t elements = (size_t)1 << log_of_next(t);

	return elements < max - t->room ? elements : max - t->room;
}

void tiers_add(struct tiers *t, void *memory, size_t elements)
{
	t->of[log_of_next(t) - TIERS_LOG_FIRST] = memory;
	t->room += elements;
}

bool tiers_grow(struct tiers *t, size_t size, size_t max)
{
	const size_t elements = tiers_next(t, max);
	void *memory = elements == 0 ? NULL : mem_alloc(elements * size);

	if (memory == NULL) {
		return false;
	}
	tiers_add(t, memory, elements);
	return true;
}

void tiers_free(struct tiers *t)
{
	for (size_t i = 0; i < TIERS_MAX; i++) {
		mem_free(t->of[i]);
	}
	*t = (struct tiers){ .room = 0 };
}
