#include "recorder/cardinality.h"

#include "base/lru.h"
#include "base/utf8.h"

bool cardinality_add(struct cardinality *c, evrec_str value)
{
	uint32_t hash;
	size_t i;

	if (value.len == 0 || c->len > CARDINALITY_MAX) {
		return false;
	}
	hash = (uint32_t)lru_hash(value) | 1;
	i = (hash >> 1) % CARDINALITY_SLOTS;
	while (c->hashes[i] != 0) {
		if (c->hashes[i] == hash) {
			return false;
		}
		i = (i + 1) % CARDINALITY_SLOTS;
	}
	c->hashes[i] = hash;
	utf8_copy(c->examples[c->len % CARDINALITY_EXAMPLES], sizeof(c->examples[0]), value);
	c->len++;
	return true;
}

void cardinality_put(const struct cardinality *c, const char *values, struct line *line)
{
	line_printf(line, "more than %d different %s, e.g. ", CARDINALITY_MAX, values);
	for (size_t i = 0; i < CARDINALITY_EXAMPLES; i++) {
		line_printf(line, i == 0 ? "\"" : ", \"");
		line_put_escaped(line, str_from(c->examples[(c->len + i) % CARDINALITY_EXAMPLES]));
		line_printf(line, "\"");
	}
}
