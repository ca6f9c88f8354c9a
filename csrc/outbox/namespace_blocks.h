/*
 * namespace_blocks.h - namespaces that refuse writes: the account has no right to write there, or they are being deleted.
 *
 * For NAMESPACE_BLOCK_TERM after a refusal, writes to the namespace are dropped. Then one write, the probe, is sent,
 * and others are held until it was answered. Creates and patches are blocked independently: an account may have the
 * right to only one of them, and a namespace that is being deleted still takes patches. At most NAMESPACE_BLOCKS_MAX
 * blocks are known, the latest.
 *
 * The term is 30 s: shorter than people who grant rights or create namespaces would wait, and a request every 30 s for
 * each namespace is no load for the server.
 *
 * Not locked: belongs to an outbox.
 */
#ifndef EVREC_NAMESPACE_BLOCKS_H
#define EVREC_NAMESPACE_BLOCKS_H

#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

#define NAMESPACE_BLOCKS_MAX 64
#define NAMESPACE_BLOCK_TERM (30 * EVREC_SECOND)

struct namespace_block {
	char name[64]; /* a DNS label has at most 63 */
	size_t name_len;
	enum verb verb;
	enum evrec_cause cause;
	int64_t since;             /* the last refusal, monotonic ns */
	const struct entry *probe; /* in flight; or NULL */
};

/* All zero blocks none. */
struct namespace_blocks {
	struct namespace_block list[NAMESPACE_BLOCKS_MAX];
	size_t len;
};

/* A name that is too long for a namespace is not remembered. */
void namespace_blocks_add(struct namespace_blocks *b, evrec_str name, enum verb verb, enum evrec_cause cause,
                          int64_t now);
/* The block of this namespace and verb; NULL: none. Valid until the next call of the other two functions. */
struct namespace_block *namespace_blocks_find(struct namespace_blocks *b, evrec_str name, enum verb verb);
void namespace_blocks_remove(struct namespace_blocks *b, struct namespace_block *block);

#pragma GCC visibility pop

#endif
