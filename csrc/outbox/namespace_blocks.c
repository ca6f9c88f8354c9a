#include "outbox/namespace_blocks.h"

struct namespace_block *namespace_blocks_find(struct namespace_blocks *b, evrec_str name, enum verb verb)
{
	for (size_t i = 0; i < b->len; i++) {
		struct namespace_block *block = &b->list[i];

		if (block->verb == verb && str_eq((evrec_str){ block->name, block->name_len }, name)) {
			return block;
		}
	}
	return NULL;
}

/* Makes room for one more block; if the table is full, in place of the block with the oldest refusal. */
static struct namespace_block *make(struct namespace_blocks *b)
{
	struct namespace_block *oldest = &b->list[0];

	if (b->len < NAMESPACE_BLOCKS_MAX) {
		b->len++;
		return &b->list[b->len - 1];
	}
	for (size_t i = 1; i < NAMESPACE_BLOCKS_MAX; i++) {
		if (b->list[i].since < oldest->since) {
			oldest = &b->list[i];
		}
	}
	return oldest;
}

void namespace_blocks_add(struct namespace_blocks *b, evrec_str name, enum verb verb, enum evrec_cause cause,
                          int64_t now)
{
	struct namespace_block *block = namespace_blocks_find(b, name, verb);

	if (block == NULL) {
		if (name.len == 0 || name.len > sizeof(block->name)) {
			return;
		}
		block = make(b);
		memcpy(block->name, name.data, name.len);
		block->name_len = name.len;
		block->verb = verb;
	}
	block->cause = cause;
	block->since = now;
	block->probe = NULL;
}

void namespace_blocks_remove(struct namespace_blocks *b, struct namespace_block *block)
{
	b->len--;
	*block = b->list[b->len];
}
