#include "sink/otlp.h"

void otlp_parts_begin(struct otlp_parts *parts, size_t n)
{
	parts->at = 0;
	parts->waiting[0] = n;
	parts->len = 1;
}

size_t otlp_parts_next(const struct otlp_parts *parts)
{
	return parts->len == 0 ? 0 : parts->waiting[parts->len - 1];
}

void otlp_parts_cut(struct otlp_parts *parts, size_t n)
{
	size_t *next = &parts->waiting[parts->len - 1];

	if (*next != n) {
		next[1] = n;
		next[0] -= n;
		parts->len++;
	}
}

void otlp_parts_halve(struct otlp_parts *parts)
{
	otlp_parts_cut(parts, (otlp_parts_next(parts) + 1) / 2);
}

void otlp_parts_pass(struct otlp_parts *parts)
{
	parts->len--;
	parts->at += parts->waiting[parts->len];
}
